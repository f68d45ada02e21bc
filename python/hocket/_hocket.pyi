"""What hocket's Python package is made of; use it through `hocket`."""



from os import PathLike
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Sequence
from typing import Any, NoReturn, Optional, Union

from numpy.typing import NDArray

from .bootstrap import Bootstrap
from ._calls.types import Array, ArrayT, Envelope, Op, Received, ReceivedObject, Stream, Timeout
from .errors import Error, RankCall, Status
from .grid import Grid
from .operators import Operator

class Work:
    """
    A call that has been started and may not have finished.

    Keeps its arrays alive; leave them alone until it is done. Dropping a pending Work cancels the call,
    which fails the communicator on all ranks.
    """

    def wait(self, timeout: Timeout = None, stream: Stream = None) -> Any:
        """
        Wait for the call to finish.

        A call on arrays in a GPU's memory is waited for by a stream: this returns at once, and what is put
        on the stream from now on comes after the call. Use `synchronize` to wait here.

        Parameters
        ----------
        timeout : float or datetime.timedelta, optional
            Seconds to wait here; the call's own deadline holds besides.
        stream : stream or int, optional
            The stream that waits; by default the current one of the arrays' framework.

        Returns
        -------
        array or None
            What the blocking call would have returned.

        Raises
        ------
        TimeoutError
            Time ran out here; the call goes on.
        Error
            The call's error.
        """

    def synchronize(self, timeout: Timeout = None) -> Any:
        """
        Wait here for the call to finish, on the GPU too.

        Parameters
        ----------
        timeout : float or datetime.timedelta, optional
            Seconds to wait; the call's own deadline holds besides.

        Returns
        -------
        array or None
            What the blocking call would have returned.

        Raises
        ------
        TimeoutError
            Time ran out here; the call goes on.
        Error
            The call's error.
        """

    def _ends_within(self, seconds: float) -> bool: ...

    def test(self) -> bool:
        """
        True when finished, with or without error. Gives the call a chance to move.
        """

    @property
    def done(self) -> bool:
        """The same as `test()`."""

    @property
    def exception(self) -> Optional[Error]:
        """
        The error of a finished call; None while it is pending or when it succeeded.
        """

    def add_done_callback(self, fn: Callable[[Work], object]) -> None:
        """
        Have ``fn(work)`` called once the call has ended, well or not.

        In a thread of hocket's, or here and now where it has ended. Until then the Work is kept. What `fn`
        raises is printed. Where the program ends first, the call has two seconds more, and is then given up.
        """

    def __await__(self) -> Generator[Any, None, Any]:
        """
        ``await work``, under asyncio or trio: what `synchronize` returns, or raises.

        Where the task that awaits it is cancelled, the call is given up, as by dropping the Work.
        """

    def _give_up(self) -> None: ...

    @property
    def _is_on_gpu(self) -> bool: ...

    def __repr__(self) -> str: ...

    @property
    def received(self) -> Optional[Received]:
        """
        Who sent and how much, (source, tag, count), once a `recv_async` has finished; None before, when it failed, and of every other call.
        """

class Prepared:
    """
    A checked call, to be made again and again on the same arrays.

    Keeps its arrays alive. Every rank prepares and makes the same calls.
    """

    def __call__(self) -> Any:
        """Make the call; returns what the blocking one returns."""

    def start(self) -> Work:
        """Start the call."""

    def __repr__(self) -> str: ...

def _write_unraisable(error: BaseException, where: Any) -> None:
    """Tells `sys.unraisablehook` of an exception that nobody can be given."""

class _Endings:
    """Calls in host memory that are waited for together."""

    def __init__(self) -> None: ...

    def watch(self, work: Work, key: int) -> None:
        """Have `next` return `key` once the call has ended, or `take`."""

    def forget(self, work: Work) -> None:
        """
        Watch a call no longer. If it has ended, its key may be returned all the same.
        """

    def next(self, timeout: Timeout = None) -> Optional[int]:
        """
        Waits for the next call to end; None when all that has ended has been returned and this is closed, or when time ran out. Several threads may wait.
        """

    def take(self) -> list[int]:
        """The keys of all that have ended since; never waits."""

    def fileno(self) -> int:
        """
        A descriptor that can be read from while `take` has something to give. For polling.
        """

    def close(self) -> None: ...

class _Unfinished:
    """Memory of a result that is being made."""

class Communicator:
    """
    A set of ranks, numbered from 0, and everything they can do together.

    Comes from :func:`hocket.init`, or is made of another. All ranks make the same calls in the same
    order; what they disagree in is raised as `Mismatch` on all of them. Every call has a deadline.

    Arrays are contiguous ones of NumPy, CuPy, PyTorch or JAX, or anything with DLPack or the buffer
    protocol, in the host's memory or a GPU's. What `out` is left away for is said at each call. Threads
    may use different communicators at once, one communicator only in turns.

    After `PeerDied`, `DeadlineExceeded`, `Mismatch`, `Aborted` or `DeviceError` every later call raises
    the same; after `InvalidArgument` the communicator can be used further.
    """

    @property
    def rank(self) -> int:
        """This process's number, from 0; -1 where it is not a member."""

    @property
    def size(self) -> int:
        """How many ranks there are."""

    @property
    def is_member(self) -> bool:
        """Whether this process has a rank here."""

    @property
    def name(self) -> str:
        """"world" for the first; what messages call it."""

    @property
    def world_ranks(self) -> tuple[int, ...]:
        """The rank in the world of each member, in order."""

    @property
    def hosts(self) -> tuple[int, ...]:
        """The number, from 0, of the host of each member, in order."""

    def __repr__(self) -> str: ...

    def new_group(self, ranks: Iterable[int], deadline: Timeout = None) -> Communicator:
        """
        Make a communicator of some ranks, numbered in the order given.

        Every rank of this communicator makes the call, with the same list; those that are not in it get a
        communicator of which they are no member.
        """

    def grid(self, shape: Sequence[int], periodic: Union[bool, Sequence[bool]] = False) -> Grid:
        """
        The ranks as a grid; see `hocket.Grid`. Of this rank alone: nobody is asked.
        """

    def split(self, color: int, key: int = 0, deadline: Timeout = None) -> Communicator:
        """
        Part the ranks into communicators, one for each color.

        Parameters
        ----------
        color : int
            Ranks of equal color come together; negative for none.
        key : int
            The order within; ties by the old rank.
        """

    def duplicate(self, deadline: Timeout = None) -> Communicator:
        """
        Make a communicator of the same ranks, whose calls run independently of this one's.
        """

    @property
    def intra_node(self) -> Communicator:
        """
        The members on this rank's host. Made at the first use, which is a collective call.
        """

    @property
    def inter_node(self) -> Communicator:
        """
        The members with this one's rank on their hosts, one a host. Made at the first use, which is a collective call.
        """

    def admit(self, newcomers: int = 1, patience: Timeout = None, *, keep_ranks: bool = True, deadline: Timeout = None, exclude_missing: bool = False, allow_minority: bool = False) -> Communicator:
        """
        Take newcomers into the job: processes that wait at its door, started with ``hocket run
        --join`` or ``hocket.init(join=...)``.

        To be called by all ranks that are left, as `rebuild`: after an error that ended this communicator,
        or at any time. It returns the communicator of a new world of members and newcomers. Fewer newcomers
        than asked for, and ranks that die meanwhile, are no error: see `size` and `newcomers`. This
        communicator has ended with it. If the call fails, it is what `rebuild` returns instead.

        Parameters
        ----------
        newcomers : int
            The most that are taken in; 0 takes none.
        patience : float, timedelta or None
            How long to wait until so many have come; None for 10 s, 0 for those that wait already.
        keep_ranks : bool
            Members keep their ranks in the world, and newcomers get the empty ones, then new ones. False:
            members come first, in order.
        deadline, exclude_missing, allow_minority
            For members that live but do not call it; see `rebuild`.

        Raises
        ------
        InvalidArgument
            An argument is refused, here or on another rank, which is named; or the ranks are threads.
        RendezvousError
            The door cannot be opened, or the members cannot meet in a new world; it says why.
        DeadlineExceeded
            Members that live did not come; it names them.
        """

    @property
    def door(self) -> str:
        """
        The address where newcomers wait for `admit`, for `hocket.init(join=...)`.
        """

    @property
    def newcomers(self) -> tuple[int, ...]:
        """
        The ranks in the world that the `admit` which made it took in, in order.
        """

    def rebuild(self, deadline: Timeout = None, *, exclude_missing: bool = False, allow_minority: bool = False) -> Communicator:
        """
        Make the communicator of the next epoch: those ranks that are left, numbered anew.

        To be called by all ranks that are left, after an error that ended this communicator
        (`PeerDied`, `DeadlineExceeded`, `Mismatch`, `Aborted`) or at any time; calls of the others that
        wait for this rank then end with `Aborted`. All that it returns on have the same members, in their
        old order. This communicator has ended with it.

        Parameters
        ----------
        deadline : float, timedelta or None
            How long to wait for ranks that live but do not call it; None for the default deadline.
        exclude_missing : bool
            Go on without those then, instead of raising `DeadlineExceeded`.
        allow_minority : bool
            Across hosts: go on though ranks that cannot be heard may be as many, and do the same.

        Raises
        ------
        DeadlineExceeded
            Ranks that live did not come; it names them. It can be called again.
        RendezvousError
            The others have gone on without this rank, or may have, as they cannot be heard.
        InvalidArgument
            An argument is refused, here or on another rank, which is named; all may call it again.
        """

    @property
    def epoch(self) -> int:
        """How often it has been rebuilt: 0 for the first."""

    def abort(self, reason: str = '') -> None:
        """
        End the pending and later calls of all ranks with `Aborted`, now, without their doing. May be called while another thread waits in a call.
        """

    def refuse(self, reason: str) -> NoReturn:
        """
        Take part in the next call by refusing it: raises `InvalidArgument` here and, at once, on the other ranks. For layers above that check arguments of their own.
        """

    @property
    def status(self) -> Optional[Status]:
        """The error that ended this communicator; None while it works."""

    @property
    def deadline(self) -> float:
        """
        Seconds that a call on this rank may take unless it says otherwise: infinity for ever, None for what the communicator was made with.
        """

    @deadline.setter
    def deadline(self, seconds: Timeout) -> None: ...

    @property
    def allow_pickle(self) -> bool:
        """
        Whether calls on this rank send and take what only pickle can carry, unless they say otherwise.

        See `broadcast_object`. All ranks must say it. Communicators made of this one do as it does.
        """

    @allow_pickle.setter
    def allow_pickle(self, allow: bool) -> None: ...

    @property
    def audit(self) -> bool:
        """
        Whether this rank keeps an audit of the calls, for ``hocket trace --diff``.

        Communicators made of this one do as it does. Without HOCKET_AUDIT the file lies beside the trace, or
        in ``hocket-audit``.
        """

    @audit.setter
    def audit(self, audit: bool) -> None: ...

    def _begin_task(self, number: int) -> None:
        """Say that this rank begins one of the tasks that all ranks are given."""

    def _end_task(self) -> bool:
        """
        Say that this rank has ended it; False, and nothing is said, while it has calls under way.
        """

    def last_calls(self) -> list[RankCall]:
        """What each rank last called, as far as it can be seen from here."""

    def recent_calls(self) -> list[RankCall]:
        """This rank's last calls, oldest first."""

    def dump(self, directory: Optional[Union[str, PathLike[str]]] = None) -> str:
        """
        Write the flight record to a file: what each rank was last seen in, this rank's last calls,
        and the error if there is one.

        Parameters
        ----------
        directory : path, optional
            By default where HOCKET_DUMP_DIR says. Made where it does not exist.

        Returns
        -------
        str
            The file's name. Any thread may ask, also while another one waits in a call.
        """

    def close(self) -> None:
        """
        Give back what the communicator holds; later calls are refused.

        Local and cheap, but where calls on GPUs are under way: these end first, well or not, until their
        deadlines.

        Raises
        ------
        Error
            What ended a call on a GPU, where no call has raised it yet. The communicator is closed all the
            same. At the interpreter's end, and in a child of multiprocessing, this is printed on standard
            error instead, and the exit code is 1.
        """

    def __enter__(self) -> Communicator: ...

    def __exit__(self, *exc_info: object) -> None: ...

    def all_reduce(self, x: ArrayT, out: Optional[ArrayT] = None, op: Union[Op, Operator] = 'sum', deadline: Timeout = None, stream: Stream = None) -> ArrayT:
        """
        Reduce arrays over all ranks; every rank gets the result.

        Parameters
        ----------
        x : array
            This rank's elements. All ranks bring as many, of one dtype.
        out : array, optional
            Where the result goes: as many elements, of any shape, as elements correspond in the order in
            which they lie. Without it, into `x`.
        op : str or Operator
            "sum", "product" (or "prod"), "min", "max", "avg", "band", "bor", "bxor". 16-bit and 8-bit
            floats accumulate in float32; on one host ranks are taken in ascending order. Or a
            `hocket.Operator`, made of a function of one's own, for arrays in the host's memory.
        deadline : float or datetime.timedelta, optional
            Seconds this call may take; by default the communicator's `deadline`.

        Returns
        -------
        array
            `out`, or `x` where there is none.

        Raises
        ------
        InvalidArgument
            The array is not contiguous, read-only, of a dtype without this op, ...
        Mismatch, PeerDied, DeadlineExceeded, Aborted
            See :mod:`hocket.errors`.
        """

    def all_reduce_async(self, x: Array, out: Optional[Array] = None, op: Union[Op, Operator] = 'sum', deadline: Timeout = None, stream: Stream = None) -> Work:
        """
        Start `all_reduce`; the arrays must be left alone until the Work is done.
        """

    def prepare_all_reduce(self, x: Array, out: Optional[Array] = None, op: Union[Op, Operator] = 'sum', deadline: Timeout = None, stream: Stream = None) -> Prepared:
        """
        Check `all_reduce` once, to call it again and again on the same arrays.
        """

    def reduce(self, x: ArrayT, out: Optional[ArrayT] = None, root: int = 0, op: Union[Op, Operator] = 'sum', deadline: Timeout = None, stream: Stream = None) -> Optional[ArrayT]:
        """
        Reduce arrays over all ranks; the root alone gets the result.

        Parameters
        ----------
        x : array
            This rank's elements. All ranks bring as many, of one dtype.
        out : array, optional
            At the root: where the result goes, as for `all_reduce`; without it, into `x`. Elsewhere
            ignored.
        root : int
            The rank that gets the result.
        op, deadline
            As for `all_reduce`.

        Returns
        -------
        array or None
            The result at the root, None elsewhere.
        """

    def reduce_async(self, x: Array, out: Optional[Array] = None, root: int = 0, op: Union[Op, Operator] = 'sum', deadline: Timeout = None, stream: Stream = None) -> Work:
        """Start `reduce`; the arrays must be left alone until the Work is done."""

    def prepare_reduce(self, x: Array, out: Optional[Array] = None, root: int = 0, op: Union[Op, Operator] = 'sum', deadline: Timeout = None, stream: Stream = None) -> Prepared:
        """Check `reduce` once, to call it again and again on the same arrays."""

    def scan(self, x: ArrayT, out: Optional[ArrayT] = None, op: Union[Op, Operator] = 'sum', deadline: Timeout = None, stream: Stream = None) -> ArrayT:
        """
        Reduce arrays over the ranks up to each one: a prefix reduction.

        Rank r gets ((x0 op x1) op x2) ... op xr.

        Parameters
        ----------
        x : array
            This rank's elements. All ranks bring as many, of one dtype.
        out : array, optional
            Where the result goes, as for `all_reduce`. Without it, into `x`.
        op : str or Operator
            As for `all_reduce`; "avg" divides by how many ranks are combined, r + 1. NaN of one rank makes
            NaN of it and all after it, also by "min" and "max".
        deadline
            As for `all_reduce`.

        Returns
        -------
        array
            `out`, or `x` where there is none.
        """

    def scan_async(self, x: Array, out: Optional[Array] = None, op: Union[Op, Operator] = 'sum', deadline: Timeout = None, stream: Stream = None) -> Work:
        """Start `scan`; the arrays must be left alone until the Work is done."""

    def prepare_scan(self, x: Array, out: Optional[Array] = None, op: Union[Op, Operator] = 'sum', deadline: Timeout = None, stream: Stream = None) -> Prepared:
        """Check `scan` once, to call it again and again on the same arrays."""

    def exscan(self, x: ArrayT, out: Optional[ArrayT] = None, op: Union[Op, Operator] = 'sum', deadline: Timeout = None, stream: Stream = None) -> ArrayT:
        """
        Reduce arrays over the ranks before each one: an exclusive prefix reduction.

        Rank r gets ((x0 op x1) op x2) ... op x(r - 1). Nobody is before rank 0: there `out`, or `x` without
        it, stays as it is.

        Parameters
        ----------
        x : array
            This rank's elements. All ranks bring as many, of one dtype.
        out : array, optional
            Where the result goes, as for `all_reduce`. Without it, into `x`.
        op, deadline
            As for `scan`; "avg" divides by r.

        Returns
        -------
        array
            `out`, or `x` where there is none.
        """

    def exscan_async(self, x: Array, out: Optional[Array] = None, op: Union[Op, Operator] = 'sum', deadline: Timeout = None, stream: Stream = None) -> Work:
        """Start `exscan`; the arrays must be left alone until the Work is done."""

    def prepare_exscan(self, x: Array, out: Optional[Array] = None, op: Union[Op, Operator] = 'sum', deadline: Timeout = None, stream: Stream = None) -> Prepared:
        """Check `exscan` once, to call it again and again on the same arrays."""

    def reduce_scatter(self, x: ArrayT, out: Optional[ArrayT] = None, op: Union[Op, Operator] = 'sum', deadline: Timeout = None, stream: Stream = None) -> ArrayT:
        """
        Reduce arrays over all ranks; rank r gets the r-th share of the result.

        Parameters
        ----------
        x : array
            The shares of all ranks one after the other, in C order. Without `out` its shape is
            (size, \\*share), or its first axis is cut: (size * k, \\*rest), of which a share is (k, \\*rest).
        out : array, optional
            This rank's share, x.size / size elements of any shape; may be the beginning of `x`.
        op, deadline
            As for `all_reduce`.

        Returns
        -------
        array
            `out`, or a new array of the shape of a share.
        """

    def reduce_scatter_async(self, x: Array, out: Optional[Array] = None, op: Union[Op, Operator] = 'sum', deadline: Timeout = None, stream: Stream = None) -> Work:
        """
        Start `reduce_scatter`; the arrays must be left alone until the Work is done.
        """

    def prepare_reduce_scatter(self, x: Array, out: Optional[Array] = None, op: Union[Op, Operator] = 'sum', deadline: Timeout = None, stream: Stream = None) -> Prepared:
        """
        Check `reduce_scatter` once, to call it again and again on the same arrays.
        """

    def reproducible_sum(self, shards: Array, out: ArrayT, op: Op = 'sum', deadline: Timeout = None, stream: Stream = None) -> ArrayT:
        """
        Sum shards so that the bits depend on the shards alone.

        All ranks bring consecutive shards of one globally numbered list, which are added by a fixed binary
        tree over the shard numbers: the result is the same to the last bit however many ranks hold them.

        Parameters
        ----------
        shards : array
            This rank's shards one after the other, in C order, each as many elements as `out`; none is
            fine.
        out : array
            The sum, on every rank.
        op : str
            "sum", or "avg" over the shards.

        Returns
        -------
        array
            `out`.
        """

    def argmin(self, x: Array, index: Optional[Array] = None, deadline: Timeout = None, stream: Stream = None) -> tuple[Any, ...]:
        """
        The least of each element over all ranks, and who has it.

        Where several ranks have it, it is the lowest of them; 0.0 and -0.0 are equal here. A NaN of any rank
        is the extreme: the value is NaN, and the rank the lowest that brings one.

        Parameters
        ----------
        x : array
            This rank's elements. All ranks bring as many, of one dtype that has an order: any but complex
            numbers. Those of a GPU the host compares, on a copy, in the order of the stream.
        index : array of integers, optional
            What this rank knows each element by, such as its place in a larger array. All ranks bring one,
            or none does.
        deadline : float or datetime.timedelta, optional
            Seconds this call may take; by default the communicator's `deadline`.
        stream : optional
            Of arrays on a GPU: as for `all_reduce`.

        Returns
        -------
        value : array
            The least of all ranks' elements, on every rank, of the shape and dtype of `x`.
        rank : array of int32
            The rank that has it: NumPy's, for arrays on a GPU one of theirs.
        index : array
            That rank's `index` of it. Where `index` was given.
        """

    def argmin_async(self, x: Array, index: Optional[Array] = None, deadline: Timeout = None, stream: Stream = None) -> Work:
        """Start `argmin`; the arrays must be left alone until the Work is done."""

    def prepare_argmin(self, x: Array, index: Optional[Array] = None, deadline: Timeout = None, stream: Stream = None) -> Prepared:
        """Check `argmin` once, to call it again and again on the same arrays."""

    def argmax(self, x: Array, index: Optional[Array] = None, deadline: Timeout = None, stream: Stream = None) -> tuple[Any, ...]:
        """
        The greatest of each element over all ranks, and who has it; as `argmin`.
        """

    def argmax_async(self, x: Array, index: Optional[Array] = None, deadline: Timeout = None, stream: Stream = None) -> Work:
        """Start `argmax`; the arrays must be left alone until the Work is done."""

    def prepare_argmax(self, x: Array, index: Optional[Array] = None, deadline: Timeout = None, stream: Stream = None) -> Prepared:
        """Check `argmax` once, to call it again and again on the same arrays."""

    def broadcast(self, x: ArrayT, root: int = 0, deadline: Timeout = None, stream: Stream = None) -> ArrayT:
        """
        Send the root's array to all ranks, in place.

        Parameters
        ----------
        x : array
            At the root what is sent (it may be read-only), elsewhere where it goes: as many elements, of
            the same dtype and in the same order of axes, of any shape.
        root : int
            The rank that sends.
        deadline : float or datetime.timedelta, optional
            Seconds this call may take; by default the communicator's `deadline`.

        Returns
        -------
        array
            `x`.
        """

    def broadcast_async(self, x: Array, root: int = 0, deadline: Timeout = None, stream: Stream = None) -> Work:
        """
        Start `broadcast`; the arrays must be left alone until the Work is done.
        """

    def prepare_broadcast(self, x: Array, root: int = 0, deadline: Timeout = None, stream: Stream = None) -> Prepared:
        """Check `broadcast` once, to call it again and again on the same arrays."""

    def all_gather(self, x: ArrayT, out: Optional[ArrayT] = None, deadline: Timeout = None, stream: Stream = None) -> ArrayT:
        """
        Collect every rank's array on every rank.

        Parameters
        ----------
        x : array
            This rank's elements, in C order; as many on every rank, of one dtype.
        out : array, optional
            size * x.size elements of any shape, rank after rank. To work in place pass ``x=out[rank]``.

        Returns
        -------
        array
            `out`, or a new array of shape (size, \\*x.shape).
        """

    def all_gather_async(self, x: Array, out: Optional[Array] = None, deadline: Timeout = None, stream: Stream = None) -> Work:
        """
        Start `all_gather`; the arrays must be left alone until the Work is done.
        """

    def prepare_all_gather(self, x: Array, out: Optional[Array] = None, deadline: Timeout = None, stream: Stream = None) -> Prepared:
        """
        Check `all_gather` once, to call it again and again on the same arrays.
        """

    def gather(self, x: ArrayT, out: Optional[ArrayT] = None, root: int = 0, deadline: Timeout = None, stream: Stream = None) -> Optional[ArrayT]:
        """
        Collect every rank's array at the root.

        Parameters
        ----------
        x : array
            This rank's elements, in C order; as many on every rank, of one dtype.
        out : array, optional
            At the root: size * x.size elements of any shape, rank after rank. Elsewhere ignored. To work in
            place pass ``x=out[root]`` there.
        root : int
            The rank that collects.

        Returns
        -------
        array or None
            At the root `out`, or a new array of shape (size, \\*x.shape); None elsewhere.
        """

    def gather_async(self, x: Array, out: Optional[Array] = None, root: int = 0, deadline: Timeout = None, stream: Stream = None) -> Work:
        """Start `gather`; the arrays must be left alone until the Work is done."""

    def prepare_gather(self, x: Array, out: Optional[Array] = None, root: int = 0, deadline: Timeout = None, stream: Stream = None) -> Prepared:
        """Check `gather` once, to call it again and again on the same arrays."""

    def scatter(self, x: Optional[ArrayT] = None, out: Optional[ArrayT] = None, root: int = 0, deadline: Timeout = None, stream: Stream = None) -> ArrayT:
        """
        Hand the entries of the root's array out, one a rank.

        Parameters
        ----------
        x : array, optional
            At the root: size * share elements in C order, rank after rank; without `out` its shape is
            (size, \\*share). Elsewhere ignored.
        out : array
            This rank's share, of any shape; required at ranks other than the root. To work in place at the root pass
            ``out=x[root]``.
        root : int
            The rank that hands out.

        Returns
        -------
        array
            `out`, or at the root a new array of the shape of a share.
        """

    def scatter_async(self, x: Optional[Array] = None, out: Optional[Array] = None, root: int = 0, deadline: Timeout = None, stream: Stream = None) -> Work:
        """Start `scatter`; the arrays must be left alone until the Work is done."""

    def prepare_scatter(self, x: Optional[Array] = None, out: Optional[Array] = None, root: int = 0, deadline: Timeout = None, stream: Stream = None) -> Prepared:
        """Check `scatter` once, to call it again and again on the same arrays."""

    def all_to_all(self, x: ArrayT, out: Optional[ArrayT] = None, deadline: Timeout = None, stream: Stream = None) -> ArrayT:
        """
        Send a part of `x` to each rank and get one from each.

        Parameters
        ----------
        x : array
            size parts of equal size, in C order: part r goes to rank r.
        out : array, optional
            As many elements, of any shape: part r comes from rank r. May be `x` itself.

        Returns
        -------
        array
            `out`, or a new array of the shape of `x`.
        """

    def all_to_all_async(self, x: Array, out: Optional[Array] = None, deadline: Timeout = None, stream: Stream = None) -> Work:
        """
        Start `all_to_all`; the arrays must be left alone until the Work is done.
        """

    def prepare_all_to_all(self, x: Array, out: Optional[Array] = None, deadline: Timeout = None, stream: Stream = None) -> Prepared:
        """
        Check `all_to_all` once, to call it again and again on the same arrays.
        """

    def barrier(self, deadline: Timeout = None, stream: Stream = None) -> None:
        """
        Return when all ranks have come here.

        Parameters
        ----------
        deadline : float or datetime.timedelta, optional
            Seconds this call may take; by default the communicator's `deadline`.
        stream : stream or int, optional
            With a GPU's stream the barrier is one of the streams: it returns at once, and what follows on
            this one waits until all ranks' streams have come here.
        """

    def barrier_async(self, deadline: Timeout = None, stream: Stream = None) -> Work:
        """Start a `barrier`."""

    def all_gather_v(self, x: Array, out: Union[Array, Sequence[Array], None] = None, counts: Optional[Sequence[int]] = None, deadline: Timeout = None, stream: Stream = None) -> Array:
        """
        Collect every rank's rows, as many as it has, on every rank: uneven parts.

        Parameters
        ----------
        x : array
            This rank's rows; beyond the first axis the shape is the same on every rank.
        out : array or list of arrays, optional
            Where all rows go, rank after rank. A list has an array for each rank, each of its own in C
            order and in host memory; nothing is copied in between.
        counts : sequence of int, optional
            Rows of each rank. Without them they are asked for first, by one small call more that
            `all_gather_v_async` waits for; all ranks give them or none does.

        Returns
        -------
        array
            `out`, or a new array of shape (sum(counts), \\*x.shape[1:]).
        """

    def all_gather_v_async(self, x: Array, out: Union[Array, Sequence[Array], None] = None, counts: Optional[Sequence[int]] = None, deadline: Timeout = None, stream: Stream = None) -> Work:
        """
        Start `all_gather_v`; the arrays must be left alone until the Work is done.
        """

    def gather_v(self, x: Array, out: Union[Array, Sequence[Array], None] = None, counts: Optional[Sequence[int]] = None, root: int = 0, deadline: Timeout = None, stream: Stream = None) -> Optional[Array]:
        """
        Collect every rank's rows, as many as it has, at the root: uneven parts.

        Parameters are those of `all_gather_v`; `out` matters at the root alone, and elsewhere None is
        returned.
        """

    def gather_v_async(self, x: Array, out: Union[Array, Sequence[Array], None] = None, counts: Optional[Sequence[int]] = None, root: int = 0, deadline: Timeout = None, stream: Stream = None) -> Work:
        """
        Start `gather_v`; the arrays must be left alone until the Work is done.
        """

    def scatter_v(self, x: Union[Array, Sequence[Array], None] = None, out: Optional[Array] = None, counts: Optional[Sequence[int]] = None, root: int = 0, deadline: Timeout = None, stream: Stream = None) -> Array:
        """
        Hand the rows of the root's array out, counts[r] of them to rank r: uneven parts.

        Parameters
        ----------
        x : array or list of arrays, optional
            At the root: all rows, rank after rank, or a list of arrays, one a rank. Elsewhere ignored.
        out : array
            This rank's rows; required at ranks other than the root.
        counts : sequence of int, optional
            At the root: rows of each rank; by default as even as it gets, the first ranks having one more.
            Of a list: elements; by default what its arrays have.

        Returns
        -------
        array
            `out`, or at the root a new array of its rows.
        """

    def scatter_v_async(self, x: Union[Array, Sequence[Array], None] = None, out: Optional[Array] = None, counts: Optional[Sequence[int]] = None, root: int = 0, deadline: Timeout = None, stream: Stream = None) -> Work:
        """
        Start `scatter_v`; the arrays must be left alone until the Work is done.
        """

    def all_to_all_v(self, x: Union[Array, Sequence[Array]], counts: Optional[Sequence[int]] = None, out: Union[Array, Sequence[Array], None] = None, out_counts: Optional[Sequence[int]] = None, deadline: Timeout = None, stream: Stream = None) -> Array:
        """
        Send counts[r] rows of `x` to rank r and get rows from each rank.

        Parameters
        ----------
        x : array or list of arrays
            The rows for all ranks, rank after rank; or an array for each rank, in host memory.
        counts : sequence of int
            Rows for each rank. Of a list: elements; by default what its arrays have.
        out : array or list of arrays, optional
            Where the received rows go, rank after rank; or an array for each rank.
        out_counts : sequence of int, optional
            Rows from each rank. Without them they are asked for first; all ranks give them or none does.

        Returns
        -------
        array
            `out`, or a new array of shape (sum(out_counts), \\*x.shape[1:]).
        """

    def all_to_all_v_async(self, x: Union[Array, Sequence[Array]], counts: Optional[Sequence[int]] = None, out: Union[Array, Sequence[Array], None] = None, out_counts: Optional[Sequence[int]] = None, deadline: Timeout = None, stream: Stream = None) -> Work:
        """
        Start `all_to_all_v`; the arrays must be left alone until the Work is done.
        """

    def reduce_scatter_v(self, x: Array, out: Optional[Array] = None, counts: Optional[Sequence[int]] = None, op: Op = 'sum', deadline: Timeout = None, stream: Stream = None) -> Array:
        """
        Reduce arrays over all ranks; rank r gets counts[r] rows of the result.

        Parameters
        ----------
        x : array
            The rows of all ranks, rank after rank; of one shape on every rank.
        out : array, optional
            This rank's rows.
        counts : sequence of int, optional
            Rows of each rank. Without them: the rows of every rank's `out`, asked for by one small call
            more; without `out` too, as even as it gets, the first ranks having one more.

        Returns
        -------
        array
            `out`, or a new array of shape (counts[rank], \\*x.shape[1:]).
        """

    def reduce_scatter_v_async(self, x: Array, out: Optional[Array] = None, counts: Optional[Sequence[int]] = None, op: Op = 'sum', deadline: Timeout = None, stream: Stream = None) -> Work:
        """
        Start `reduce_scatter_v`; the arrays must be left alone until the Work is done.
        """

    def send(self, x: Array, destination: int, tag: int = 0, deadline: Timeout = None, stream: Stream = None) -> None:
        """
        Send an array to one rank, which receives it by `recv`.

        Messages pair by peer, tag and order, outside the order of collectives.

        Parameters
        ----------
        x : array
            What is sent. The receiver's array has as many elements, of the same dtype. One of NumPy need
            not be contiguous: it is packed, in C order.
        destination : int
            The rank to send to; `hocket.NULL_RANK` (-2) is nobody, and nothing is sent.
        tag : int
            At least 0.
        """

    def recv(self, x: Array, source: int = -1, tag: int = 0, deadline: Timeout = None, stream: Stream = None, allow_shorter: bool = False) -> Received:
        """
        Receive an array into `x`.

        Parameters
        ----------
        x : array
            Where it goes: as many elements as were sent, of the same dtype. One of NumPy need not be
            contiguous: it is written to in C order.
        source : int
            The rank to receive from; `hocket.ANY_SOURCE` (-1) for whoever sends first; `hocket.NULL_RANK`
            (-2) for nobody: `x` stays as it is.
        tag : int
            At least 0; `hocket.ANY_TAG` (-1) for whichever comes first, onto the host.
        allow_shorter : bool
            What comes may have fewer elements than `x`, and fills its beginning; what is behind stays as it
            is. For arrays on the host.

        Returns
        -------
        Received
            Named tuple (source, tag, count): who sent it, and how many elements came.
        """

    def send_async(self, x: Array, destination: int, tag: int = 0, deadline: Timeout = None, stream: Stream = None) -> Work:
        """Start a `send`; the array must be left alone until the Work is done."""

    def recv_async(self, x: Array, source: int = -1, tag: int = 0, deadline: Timeout = None, stream: Stream = None, allow_shorter: bool = False) -> Work:
        """
        Start a `recv`; the Work's result is `x`, its `received` who sent. An array that is not contiguous is written to by whichever method of the Work says first that it is done.
        """

    def probe(self, source: int = -1, tag: int = 0, deadline: Timeout = None) -> Envelope:
        """
        Wait until a message onto the host is there, and tell of it without taking it.

        The next `recv` from that source with that tag takes it, where no other thread comes before. An
        object's message, which `recv_object` takes, shows as its first part: 256 elements of uint8.

        Parameters
        ----------
        source : int
            The rank that sends; `hocket.ANY_SOURCE` (-1) for whoever does.
        tag : int
            At least 0; `hocket.ANY_TAG` (-1) for any.

        Returns
        -------
        Envelope
            Named tuple (source, tag, count, dtype): who sent it, and how many elements of which dtype,
            a string, an array for it must have.
        """

    def probe_now(self, source: int = -1, tag: int = 0) -> Optional[Envelope]:
        """`probe` without waiting: None where no message is there yet."""

    def receives(self, shape: Any, dtype: Any = 'float64', source: int = -1, tag: int = 0, count: Optional[int] = None, deadline: Timeout = None) -> AsyncIterator[tuple[Array, Received]]:
        """
        Messages one after the other: ``async for x, received in comm.receives(1000)``.

        A receive is under way only while the loop waits, so that leaving the loop gives nothing up.

        Parameters
        ----------
        shape, dtype
            Of each message, which comes in a new NumPy array.
        source : int
            The rank to receive from; by default whoever sends first.
        tag : int
            At least 0.
        count : int, optional
            How many to wait for; by default the loop does not end.
        deadline : float or datetime.timedelta, optional
            Seconds that each message may take; by default the communicator's `deadline`.
        """

    def send_recv(self, x: ArrayT, destination: int, out: Optional[ArrayT] = None, source: Optional[int] = None, tag: int = 0, deadline: Timeout = None, stream: Stream = None, allow_shorter: bool = False) -> ArrayT:
        """
        Send to one rank and receive from one, at once: an exchange, a ring, a shift.

        Parameters
        ----------
        x : array
            What is sent.
        destination : int
            The rank to send to.
        out : array, optional
            Where the received goes, as many elements as come, of any shape; may be `x` itself. Needed
            where `source` is `hocket.NULL_RANK`, from whom nothing comes.
        source : int, optional
            The rank to receive from; by default `destination`.
        tag : int
            At least 0.
        allow_shorter : bool
            True: the message may have fewer elements than `out`, and fills its beginning. Host only.

        Returns
        -------
        array
            `out`, or a new array of the shape and dtype of `x`. With `allow_shorter` the elements that
            came, along one axis.
        """

    def exchange(self, outgoing: Sequence[tuple[Array, int]], incoming: Sequence[tuple[Array, int]], tag: int = 0, deadline: Timeout = None, stream: Stream = None) -> None:
        """
        Any number of messages at once, which progress together, whatever their order.

        Messages between two ranks pair in their order; the other side may `exchange`, `send` or `recv`. On
        GPUs it returns when they are on the stream.

        Parameters
        ----------
        outgoing : sequence of (array, int)
            What is sent, and to whom.
        incoming : sequence of (array, int)
            Where what comes goes, and from whom it comes; arrays that are sent may be received into.
        tag : int
            At least 0; of all messages.
        """

    def all_reduce_coalesced(self, arrays: Sequence[Array], op: Op = 'sum', deadline: Timeout = None, stream: Stream = None) -> Sequence[Array]:
        """
        Like `all_reduce` of each array in place, in one call. They may differ in dtype and size; all ranks bring the same list. Returns `arrays`.
        """

    def broadcast_coalesced(self, arrays: Sequence[Array], root: int = 0, deadline: Timeout = None, stream: Stream = None) -> Sequence[Array]:
        """Like `broadcast` of each array, in one call. Returns `arrays`."""

    def all_gather_coalesced(self, arrays: Sequence[Array], out: Optional[Sequence[Array]] = None, deadline: Timeout = None, stream: Stream = None) -> Sequence[Array]:
        """
        Like `all_gather` of arrays[i] into out[i], in one call. Returns `out`, or new arrays.
        """

    def reduce_scatter_coalesced(self, arrays: Sequence[Array], out: Sequence[Array], op: Op = 'sum', deadline: Timeout = None, stream: Stream = None) -> Sequence[Array]:
        """
        Like `reduce_scatter` of arrays[i] into out[i], in one call. Returns `out`.
        """

    def compressed_all_reduce(self, x: ArrayT, op: Op = 'sum', deadline: Timeout = None) -> ArrayT:
        """
        Sum or average floats over all ranks, of which 8 bits an element travel; for slow networks.

        The result is the same on every rank. It is off by at most R / 254 for a sum, and that divided by
        the number of ranks for an average, where R is the sum over the ranks of (greatest - least) of the
        block that an element lies in, besides the rounding of float32, to which float64 is taken. Blocks
        have 1024 elements, counted from the beginning of each rank's share of ceil(x.size / size). Those
        with an infinity or a NaN become NaN.

        Parameters
        ----------
        x : array
            Of float16, bfloat16, float32 or float64; reduced in place. On a GPU it is copied to the host and
            back, behind what its framework's current stream has.
        op : str
            "sum" or "avg".
        deadline : float or datetime.timedelta, optional
            Seconds that each of its two steps may take.

        Returns
        -------
        array
            `x`.
        """

    def hierarchical_all_reduce(self, x: ArrayT, op: Op = 'sum', compressed: bool = False, deadline: Timeout = None) -> ArrayT:
        """
        Reduce within each host, between the hosts' first ranks, and back, in place.

        Every rank counts alike in an average, however many its host has.

        Parameters
        ----------
        x : array
            On a GPU it is copied to the host and back, behind what its framework's current stream has.
        op : str
            As for `all_reduce`.
        compressed : bool
            8 bits an element between the hosts, as in `compressed_all_reduce`, with its bound for hosts in
            place of ranks.
        deadline : float or datetime.timedelta, optional
            Seconds that each of the steps may take.

        Returns
        -------
        array
            `x`.
        """

    def broadcast_object(self, obj: Any = None, root: int = 0, allow_pickle: Optional[bool] = None, deadline: Timeout = None) -> Any:
        """
        Send the root's object to all ranks.

        Parameters
        ----------
        obj : object
            At the root what is sent: None, bool, int, float, complex, str, bytes, bytearray, arrays, NumPy's
            scalars, and lists, tuples and dicts of those. Elsewhere ignored. All arrive as they were sent,
            but for arrays that are not NumPy's: those arrive as NumPy's. Refused are subclasses of these
            types, and a list, dict, bytearray or array that the object holds twice.
        root : int
            The rank that sends.
        allow_pickle : bool, optional
            Send an object that holds anything else by pickle, as a whole. Unpickling runs the code that
            the sender asks for: only where all ranks are trusted, and all must say it. By default the
            communicator's `allow_pickle`.

        Returns
        -------
        object
            The same on all ranks. At the root `obj` itself, unless arrays in it arrive as NumPy's.
        """

    def gather_object(self, obj: Any, root: int = 0, allow_pickle: Optional[bool] = None, deadline: Timeout = None) -> Optional[list[Any]]:
        """
        The objects of all ranks, in order, at the root; None elsewhere. For the arguments see `broadcast_object`.
        """

    def all_gather_object(self, obj: Any, allow_pickle: Optional[bool] = None, deadline: Timeout = None) -> list[Any]:
        """
        The objects of all ranks, in order, on every rank. For the arguments see `broadcast_object`.
        """

    def scatter_object(self, objects: Optional[Sequence[Any]] = None, root: int = 0, allow_pickle: Optional[bool] = None, deadline: Timeout = None) -> Any:
        """
        Rank r gets objects[r] of the root. For the other arguments see `broadcast_object`.
        """

    def send_object(self, obj: Any, destination: int, tag: int = 0, allow_pickle: Optional[bool] = None, deadline: Timeout = None) -> None:
        """
        Send an object to one rank, which receives it by `recv_object`.

        `obj` and `allow_pickle` are those of
        `broadcast_object`, `destination` and `tag` those of `send`.
        """

    def recv_object(self, source: int = -1, tag: int = 0, allow_pickle: Optional[bool] = None, deadline: Timeout = None) -> ReceivedObject:
        """
        Receive what a rank sent by `send_object`.

        Parameters
        ----------
        source : int
            The rank to receive from; `hocket.ANY_SOURCE` (-1) for whoever sends first.
        tag : int
            At least 0; `hocket.ANY_TAG` (-1) for whichever comes first, which must be an object.
        allow_pickle : bool, optional
            Also take what only pickle can carry; see `broadcast_object`.

        Returns
        -------
        ReceivedObject
            Named tuple (object, source, tag).
        """

    def broadcast_object_async(self, obj: Any = None, root: int = 0, allow_pickle: Optional[bool] = None, deadline: Timeout = None) -> Work:
        """
        Start a `broadcast_object`; the Work's `wait()` returns the object. It is read at once.
        """

    def gather_object_async(self, obj: Any, root: int = 0, allow_pickle: Optional[bool] = None, deadline: Timeout = None) -> Work:
        """
        Start a `gather_object`; the Work's `wait()` returns the objects at the root.
        """

    def all_gather_object_async(self, obj: Any, allow_pickle: Optional[bool] = None, deadline: Timeout = None) -> Work:
        """Start an `all_gather_object`; the Work's `wait()` returns the objects."""

    def scatter_object_async(self, objects: Optional[Sequence[Any]] = None, root: int = 0, allow_pickle: Optional[bool] = None, deadline: Timeout = None) -> Work:
        """
        Start a `scatter_object`; the Work's `wait()` returns this rank's object.
        """

    def send_object_async(self, obj: Any, destination: int, tag: int = 0, allow_pickle: Optional[bool] = None, deadline: Timeout = None) -> Work:
        """
        Start a `send_object`. The object is read at once, and may be changed afterwards.
        """

    def recv_object_async(self, source: int = -1, tag: int = 0, allow_pickle: Optional[bool] = None, deadline: Timeout = None) -> Work:
        """Start a `recv_object`; the Work's `wait()` returns the ReceivedObject."""

    @property
    def symmetric(self) -> SymmetricMemory:
        """
        Makes arrays that peers can reach, so that collectives on them copy nothing.
        """

class _Allocation:
    """Symmetric memory; the base of arrays in it."""

class GpuArray:
    """
    Symmetric memory of a GPU, this rank's or a peer's.

    Takes part in hocket's calls as it is. ``cupy.from_dlpack(a)`` and ``torch.from_dlpack(a)`` make an
    array of it that shares its memory and keeps it alive. So does ``cupy.asarray(a)`` of this rank's;
    of a peer's it makes a copy, as that lies on another GPU.
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """Of all axes."""

    @property
    def dtype(self) -> str:
        """Its name."""

    @property
    def nbytes(self) -> int:
        """Bytes."""

    @property
    def data_ptr(self) -> int:
        """Its address."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...

    def __dlpack_device__(self) -> tuple[int, int]: ...

    def __dlpack__(self, **kwargs: Any) -> Any: ...

class SymmetricMemory:
    """
    Makes arrays that every rank of a communicator can reach.

    Collectives on such arrays, or on slices of them, copy nothing: ranks read and write each other's
    memory directly. After an error the contents are undefined.
    """

    def __repr__(self) -> str: ...

    def empty(self, shape: Union[int, Sequence[int]], dtype: Any = 'float64', memory: Optional[str] = None, deadline: Timeout = None, heap: Optional[str] = None) -> Any:
        """
        Make a zeroed array on every rank.

        Collective: all ranks give the same shape and dtype.

        Parameters
        ----------
        shape : int or sequence of int
        dtype : str or dtype
            "float32", numpy.float32, torch.bfloat16, ...; "bfloat16" and the 8-bit floats need ml_dtypes.

        memory : "host" or "cuda", optional
            Where; by default where the communicator's calls are: a GPU from its first call on GPUs on.
        heap : "hocket" or "nvshmem", optional
            Whose memory on GPUs; by default hocket's own. Of NVSHMEM's heap, where that library is
            installed, is what its device functions take. The first such call starts NVSHMEM with the
            communicator's ranks as PEs; later ones are of a communicator of the same ranks, and the arrays
            can be used in any of a part of them.

        Returns
        -------
        numpy.ndarray or GpuArray
            Its memory lives until the last rank has dropped the last view of it; NVSHMEM gets it back at
            the next such call.

        Raises
        ------
        InvalidArgument
            Ranks on several hosts, no memory, no NVSHMEM, or one of other ranks; on all ranks.
        """

    def peer(self, array: Any, rank: int) -> Any:
        """
        The array of another rank, as memory that can be read and written here.

        Parameters
        ----------
        array : array
            This rank's array, or a contiguous view of it; on a GPU, of any framework.
        rank : int
            The rank, in this communicator.

        Returns
        -------
        numpy.ndarray or GpuArray
            Of the same shape. What it holds is defined only between calls that order the ranks (a barrier,
            a collective).

        Raises
        ------
        InvalidArgument
            The array is not symmetric, or that rank's is not mapped here, which NVSHMEM's heap may have.
        """

    def free(self, array: Any, deadline: Timeout = None) -> None:
        """
        Make an array in GPUs' memory an ordinary one, on all ranks.

        Collective; `Mismatch` where ranks name different arrays. The memory goes when the last view of it
        is dropped.
        """

    def nvshmem_team(self, deadline: Timeout = None) -> int:
        """
        NVSHMEM's team of this communicator's ranks, for its device functions.

        Collective when it is first asked for; NVSHMEM runs already, by ``empty(..., heap="nvshmem")``.
        PE i of the team is rank i. It lives as long as NVSHMEM does, which is as long as the process.

        Returns
        -------
        int
            An ``nvshmem_team_t``.
        """

def _tell_places(describes: object | None) -> None: ...

def _run_time() -> float:
    """Seconds in which this process could run, as deadlines count them."""

def init(rank: Optional[int] = None, size: Optional[int] = None, address: Optional[str] = None, key: Optional[Union[bytes, str, PathLike[str]]] = None, timeout: Timeout = None, deadline: Timeout = None, engines: Optional[Iterable[str]] = None, bootstrap: Optional[Bootstrap] = None, mpi: Any = None, name: str = 'world', join: Optional[str] = None) -> Communicator:
    """Use it through `hocket.init`."""

def _tell_end(why: str) -> None: ...

def _begin_end() -> None: ...

def _finish_calls() -> bool: ...

def _check_stream(stream: Stream) -> None:
    """
    Raises where it is no stream; for calls of several parts, whose last ones have it.
    """

def _run_threads(size: int, body: Callable[[Communicator], None]) -> None: ...

class _Pool:
    """Use it through `hocket.DevicePool`."""

    def __init__(self, workers: int, devices: Sequence[int], pin: bool, deadline: Timeout, engines: Optional[Iterable[str]]) -> None: ...

    @property
    def size(self) -> int: ...

    @property
    def is_closed(self) -> bool: ...

    def streams(self, worker: int) -> tuple[int, int]: ...

    def close(self) -> None: ...

    def map(self, workers: Sequence[int], body: Callable[[int, Communicator], None], streams: Optional[Sequence[int]] = None) -> None: ...

    def distribute(self, arrays: Sequence[Array], source: Sequence[int], out: Sequence[Array], streams: Optional[Sequence[int]] = None) -> None: ...

    def reduce(self, arrays: Sequence[Array], out: Array, op: Op, across: Optional[Communicator] = None, streams: Optional[Sequence[int]] = None) -> None: ...

    def all_reduce(self, arrays: Sequence[Array], out: Sequence[Array], op: Op, group: int = 0, fixed: bool = False, across: Optional[Communicator] = None, streams: Optional[Sequence[int]] = None) -> None: ...

    def exchange_halo(self, arrays: Sequence[Array], shape: Sequence[int], seams: Sequence[int], overlap: int, blend: bool, across: Optional[Communicator] = None, outer_seams: Sequence[int] = (0, 0), streams: Optional[Sequence[int]] = None) -> None: ...

def _stream_chunks(count: int, chunk: int, buffers: int, load: Callable[[int, int, int], None], use: Callable[[int, int, int], None]) -> None: ...

class Context:
    """
    What libraries that compute on distributed arrays work with: this
    process's device and the processes that take part. One at a time; see `Context.initialize`.
    """

    @staticmethod
    def initialize(device: Optional[int] = None, bootstrap: Optional[Bootstrap] = None, mpi: Any = None, engines: Optional[Iterable[str]] = None, timeout: Timeout = None, deadline: Timeout = None) -> Context:
        """
        Make this process's context. Collective.

        Parameters
        ----------
        device : int, optional
            This process's GPU; None for work in host memory.
        bootstrap, mpi, engines, timeout, deadline
            As in `hocket.init`.

        Raises
        ------
        InvalidArgument
            There is one already: `Context.finalize` it first.
        """

    @staticmethod
    def current() -> Optional[Context]:
        """The context that was made and not finalized, or None."""

    @staticmethod
    def finalize() -> None:
        """
        Wait for the other processes and take the context down; without one nothing happens.
        """

    @property
    def communicator(self) -> Communicator:
        """All processes of the context. Usable while it stands."""

    @property
    def rank(self) -> int:
        """This process's number, from 0."""

    @property
    def size(self) -> int:
        """How many processes there are."""

    @property
    def device(self) -> Optional[int]:
        """This process's GPU, or None."""

    @property
    def engines(self) -> tuple[str, ...]:
        """Names of the engines in use, best first."""

class _Redistribution:
    """Use it through `hocket.distribution`."""

    def __init__(self, comm: Communicator, from_lower: Sequence[int], from_upper: Sequence[int], to_lower: Sequence[int], to_upper: Sequence[int], fortran: bool, deadline: Timeout = None) -> None: ...

    def move(self, comm: Communicator, x: Array, out: Array, fortran: bool) -> None: ...

    @property
    def whole(self) -> tuple[list[int], list[int]]: ...

class _Fft:
    """Use it through `hocket.fft`."""

    def __init__(self, comm: Communicator, shape: Sequence[int], corners: Sequence[Sequence[int]], kind: int, is_double: bool, axes: int, norm: int, measured: bool, gpu: Optional[int] = None, deadline: Timeout = None) -> None: ...

    def execute(self, comm: Communicator, x: Array, out: Array, inverse: bool, stream: Stream = None) -> None: ...

    @property
    def library(self) -> str: ...

    @property
    def transposes(self) -> int: ...

class _Matmul:
    """Use it through `hocket.linalg`."""

    def __init__(self, comm: Communicator, size: Sequence[int], spreads: Sequence[Sequence[int]], ops: Sequence[int], by_columns: Sequence[bool], dtype: str, dtype_b: str, result: str, form: int, gpu: Optional[int] = None, deadline: Timeout = None) -> None: ...

    def execute(self, comm: Communicator, a: Array, b: Array, c: Optional[Array], out: Array, alpha: complex, beta: complex, stream: Stream = None) -> None: ...

    @property
    def library(self) -> str: ...

    @property
    def form(self) -> int: ...

class StoreServer:
    """
    Serves a store of keys and values; for rendezvous, not for data.

    Runs in a thread of this process until `close`, or until nothing refers to it.

    Parameters
    ----------
    address : str
        An address of this host, or "unix:NAME", which the processes of this user alone can reach.
    port : int
        0: the system chooses.
    key : bytes or path, optional
        The secret that clients have to know: 32 bytes, or a file made by ``hocket key FILE``. Not
        needed for "unix:".
    job : str
        What clients have to say likewise; no secret.
    trust_network : bool
        Serve anybody who can reach the port.
    """

    def __init__(self, address: str = '127.0.0.1', port: int = 0, key: Optional[Union[bytes, str, PathLike[str]]] = None, job: str = '', trust_network: bool = False) -> None: ...

    @property
    def address(self) -> str:
        """For `connect_store`: "127.0.0.1:40123" or "unix:NAME"."""

    def close(self) -> None:
        """Stop serving. May be called again."""

class Store:
    """A client of a `StoreServer`; made by `connect_store`. Keys are str."""

    def set(self, key: str, value: bytes) -> None:
        """Set a key."""

    def get(self, key: str, timeout: Timeout = None) -> bytes:
        """The value, once it is there."""

    def try_get(self, key: str) -> Optional[bytes]:
        """The value, if it is there."""

    def add(self, key: str, amount: int) -> int:
        """Add to a counter, 0 where absent; the new value."""

    def compare_and_set(self, key: str, expected: Optional[bytes], desired: bytes) -> Optional[bytes]:
        """
        Set `desired` where the key holds `expected` (None: where there is no such key). Returns what it held before, which is `expected` exactly when it was set.
        """

    def erase(self, key: str) -> bool:
        """True when there was something to erase."""

    def close(self) -> None:
        """Leave. May be called again."""

def connect_store(address: str, key: Optional[Union[bytes, str, PathLike[str]]] = None, job: str = '', timeout: Timeout = None, trust_network: bool = False) -> Store:
    """
    Connect to a `StoreServer`.

    Parameters
    ----------
    address : str
        "host:port" or "unix:NAME".
    key, job, trust_network
        As the server has them.
    timeout : float or datetime.timedelta, optional
        Seconds for connecting, trying again while nobody serves, and for calls that wait; 300 by
        default.

    Raises
    ------
    RendezvousError
        Nobody serves there, or the two do not trust each other.
    """
