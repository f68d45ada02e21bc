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

    Keeps its arrays alive. Do not access them until the call is done. Dropping a pending Work
    cancels the call, which fails the communicator on all ranks.
    """

    def wait(self, timeout: Timeout = None, stream: Stream = None) -> Any:
        """
        Wait for the call to finish.

        For arrays in a GPU's memory, a stream waits instead of the caller: this returns at once,
        and later work on the stream runs after the call. To make the caller wait, use
        `synchronize`.

        Parameters
        ----------
        timeout : float or datetime.timedelta, optional
            Seconds that the caller waits; the call's own deadline also applies.
        stream : stream or int, optional
            The stream that waits; by default the current stream of the arrays' framework.

        Returns
        -------
        array or None
            The result of the blocking call.

        Raises
        ------
        TimeoutError
            The timeout passed; the call goes on.
        Error
            The call's error.
        """

    def synchronize(self, timeout: Timeout = None) -> Any:
        """
        Wait in this thread for the call to finish, on the GPU too.

        Parameters
        ----------
        timeout : float or datetime.timedelta, optional
            Seconds to wait; the call's own deadline also applies.

        Returns
        -------
        array or None
            The result of the blocking call.

        Raises
        ------
        TimeoutError
            The timeout passed; the call goes on.
        Error
            The call's error.
        """

    def _ends_within(self, seconds: float) -> bool: ...

    def test(self) -> bool:
        """
        True if the call has finished, with or without error. Moves the call forward if it can.
        """

    @property
    def done(self) -> bool:
        """The same as `test()`."""

    @property
    def exception(self) -> Optional[Error]:
        """
        The error of a finished call; None while it is pending, and if it succeeded.
        """

    def add_done_callback(self, fn: Callable[[Work], object]) -> None:
        """
        Call ``fn(work)`` once the call has ended, with or without error.

        `fn` runs in a thread of hocket, or at once in this thread if the call has ended already.
        The Work is kept alive until `fn` runs. If `fn` raises, the exception is printed. If the
        program ends before the call, the call gets two more seconds, and is then cancelled.
        """

    def __await__(self) -> Generator[Any, None, Any]:
        """
        ``await work``, under asyncio or trio, returns or raises what `synchronize` does.

        If the awaiting task is cancelled, the call is cancelled, too, as if the Work were dropped.
        """

    def _give_up(self) -> None: ...

    @property
    def _is_on_gpu(self) -> bool: ...

    def __repr__(self) -> str: ...

    @property
    def received(self) -> Optional[Received]:
        """
        The sender, the tag and the number of elements, (source, tag, count), of a `recv_async` that
        has succeeded. None while it is pending, if it failed, and for all other calls.
        """

class Prepared:
    """
    A checked call that can be repeated on the same arrays.

    Keeps its arrays alive. Every rank prepares the same calls, and makes them in the same order.
    """

    def __call__(self) -> Any:
        """Make the call; returns the result of the blocking call."""

    def start(self) -> Work:
        """Start the call."""

    def __repr__(self) -> str: ...

def _write_unraisable(error: BaseException, where: Any) -> None:
    """Gives an exception that no caller can get to `sys.unraisablehook`."""

class _Endings:
    """Calls in host memory that are waited for together."""

    def __init__(self) -> None: ...

    def watch(self, work: Work, key: int) -> None:
        """Have `next` return `key` once the call has ended, or `take`."""

    def forget(self, work: Work) -> None:
        """Stop watching a call. If it has ended, its key may still be returned."""

    def next(self, timeout: Timeout = None) -> Optional[int]:
        """
        Wait for the next watched call to end, and return its key. Returns None if the timeout
        passes, or after `close` once all keys have been returned. Several threads may wait at the
        same time.
        """

    def take(self) -> list[int]:
        """The keys of all calls that have ended since; never waits."""

    def fileno(self) -> int:
        """
        A descriptor that is readable while `take` would return a key. For polling.
        """

    def close(self) -> None: ...

class _Unfinished:
    """Memory of a result that is being made."""

class Communicator:
    """
    A group of ranks, numbered from 0, and the calls that they make with each other.

    `hocket.init` returns the first communicator, and others are made from it. All ranks make the
    same calls in the same order. If their calls differ, all of them raise `Mismatch`. Every call
    has a deadline.

    Arrays are contiguous arrays of NumPy, CuPy, PyTorch or JAX, or any object with DLPack or the
    buffer protocol. They lie in the host's memory or in a GPU's. The description of each call says
    where the result goes if `out` is not given. Threads may use different communicators at the same
    time. One communicator may be used by one thread at a time.

    After `PeerDied`, `DeadlineExceeded`, `Mismatch`, `Aborted` or `DeviceError` every later call raises
    the same error. After `InvalidArgument` the communicator stays usable.
    """

    @property
    def rank(self) -> int:
        """This process's number, from 0; -1 if it is not a member."""

    @property
    def size(self) -> int:
        """Number of ranks."""

    @property
    def is_member(self) -> bool:
        """Whether this process has a rank here."""

    @property
    def name(self) -> str:
        """The name in error messages; "world" for the first."""

    @property
    def world_ranks(self) -> tuple[int, ...]:
        """The rank in the world of each member, in order."""

    @property
    def hosts(self) -> tuple[int, ...]:
        """The number, from 0, of the host of each member, in order."""

    def __repr__(self) -> str: ...

    def new_group(self, ranks: Iterable[int], deadline: Timeout = None) -> Communicator:
        """
        Make a communicator of some ranks, numbered in the order of the list.

        Every rank of this communicator makes the call, with the same list. A rank that is not in the list
        gets a communicator of which it is not a member.
        """

    def grid(self, shape: Sequence[int], periodic: Union[bool, Sequence[bool]] = False) -> Grid:
        """
        The ranks as a grid; see `hocket.Grid`. Local: it communicates with no other rank.
        """

    def split(self, color: int, key: int = 0, deadline: Timeout = None) -> Communicator:
        """
        Divide the ranks into communicators, one for each color.

        Parameters
        ----------
        color : int
            Ranks of equal color get one communicator; a negative color gets none.
        key : int
            Ranks are ordered by key, and ranks with equal keys by their old rank.
        """

    def duplicate(self, deadline: Timeout = None) -> Communicator:
        """
        Make a communicator of the same ranks, whose calls run independently of this one's.
        """

    @property
    def intra_node(self) -> Communicator:
        """
        The members on this rank's host. The first use makes it, which is a collective call.
        """

    @property
    def inter_node(self) -> Communicator:
        """
        One member of each host: the members that have this rank's number within their hosts. The
        first use creates this communicator by a collective call.
        """

    def admit(self, newcomers: int = 1, patience: Timeout = None, *, keep_ranks: bool = True, deadline: Timeout = None, exclude_missing: bool = False, allow_minority: bool = False) -> Communicator:
        """
        Take newcomers into the job. A newcomer is a process that waits at the job's door; it was
        started with ``hocket run --join`` or ``hocket.init(join=...)``.

        All living ranks make this call, after an error that ended this communicator, or at any
        time. It returns the communicator of a new world, which has the members and the newcomers.
        It is no error if fewer newcomers come than asked for, or if ranks die during the call: see
        `size` and `newcomers`. The call ends this communicator. If the call fails, this object
        becomes the result of `rebuild` instead.

        Parameters
        ----------
        newcomers : int
            The largest number of newcomers to take in; 0 takes none.
        patience : float, timedelta or None
            Seconds to wait for that many newcomers. None: 10 s. 0: takes only those that already
            wait.
        keep_ranks : bool
            True: members keep their ranks in the world, and newcomers get free ranks first, then
            ranks behind the last. False: members come first, in their order.
        deadline, exclude_missing, allow_minority
            These concern members that live but do not make the call; see `rebuild`.

        Raises
        ------
        InvalidArgument
            An argument is refused, here or on another rank, which the message names. Or ranks are
            threads.
        RendezvousError
            The door cannot be opened, or the members cannot meet in a new world. The message says why.
        DeadlineExceeded
            Some living members did not make the call. The message names them.
        """

    @property
    def door(self) -> str:
        """
        The address where newcomers wait for `admit`; they pass it to `hocket.init(join=...)`.
        """

    @property
    def newcomers(self) -> tuple[int, ...]:
        """
        The newcomers of the `admit` that made this world: their ranks in it, in order.
        """

    def rebuild(self, deadline: Timeout = None, *, exclude_missing: bool = False, allow_minority: bool = False) -> Communicator:
        """
        Make the communicator of the next epoch: the living ranks, with new numbers.

        All living ranks make this call, after an error that ended this communicator (`PeerDied`,
        `DeadlineExceeded`, `Mismatch`, `Aborted`) or at any time. Calls of other ranks that wait
        for this rank then end with `Aborted`. All ranks get the same members, in their old order.
        The call ends this communicator.

        Parameters
        ----------
        deadline : float, timedelta or None
            Seconds to wait for ranks that live but do not make the call. None: the communicator's
            deadline.
        exclude_missing : bool
            True: at the deadline, go on without those ranks instead of raising `DeadlineExceeded`.
        allow_minority : bool
            True: go on even if unreachable hosts may have as many ranks as are left here, or more.
            Those ranks may go on, too.

        Raises
        ------
        DeadlineExceeded
            Some living ranks did not make the call. The message names them. The call can be
            repeated.
        RendezvousError
            The other ranks have gone on without this rank. Or they are unreachable, and may have
            gone on.
        InvalidArgument
            An argument is refused, here or on another rank, which is named. All ranks may call it
            again.
        """

    @property
    def epoch(self) -> int:
        """How often it has been rebuilt: 0 for the first."""

    def abort(self, reason: str = '') -> None:
        """
        End the pending and later calls of all ranks with `Aborted`, at once. The other ranks need
        not take part. A thread may call it while another thread waits in a call.
        """

    def refuse(self, reason: str) -> NoReturn:
        """
        Take part in the next call by refusing it. `refuse` raises `InvalidArgument` on this rank,
        and the call raises it on the other ranks without delay. It is made for packages above
        hocket that check arguments themselves.
        """

    @property
    def status(self) -> Optional[Status]:
        """The error that ended this communicator; None while it works."""

    @property
    def deadline(self) -> float:
        """
        Seconds that a call on this rank may take if the call has no `deadline` argument. Setting
        infinity means no limit. Setting None restores the value that the communicator had at first.
        """

    @deadline.setter
    def deadline(self, seconds: Timeout) -> None: ...

    @property
    def allow_pickle(self) -> bool:
        """
        The default of `allow_pickle` for calls on this rank; see `broadcast_object`.

        All ranks must set the same value. Communicators that are made from this one inherit it.
        """

    @allow_pickle.setter
    def allow_pickle(self, allow: bool) -> None: ...

    @property
    def audit(self) -> bool:
        """
        Whether this rank keeps an audit of the calls, for ``hocket trace --diff``.

        Communicators that are made from this one inherit it. Without HOCKET_AUDIT the file lies beside the
        trace, or in ``hocket-audit``.
        """

    @audit.setter
    def audit(self, audit: bool) -> None: ...

    def _named(self, whole: str) -> _NamedCalls:
        """
        A context in which errors name this rank's calls as `whole`, which consists of them.
        """

    def _begin_task(self, number: int) -> None:
        """Announce that this rank begins a task, which all ranks are given."""

    def _end_task(self) -> bool:
        """
        Tell the others that this rank has ended the task. While calls are under way, returns False and tells
        nothing.
        """

    def last_calls(self) -> list[RankCall]:
        """The last call of each rank, as far as this rank can see."""

    def recent_calls(self) -> list[RankCall]:
        """This rank's last calls, oldest first."""

    def dump(self, directory: Optional[Union[str, PathLike[str]]] = None) -> str:
        """
        Write the flight record to a file: the last known call of each rank, this rank's last calls,
        and the error if there is one.

        Any thread may call it, even while another thread waits in a call.

        Parameters
        ----------
        directory : path, optional
            The folder, which is created if it does not exist. By default HOCKET_DUMP_DIR names it.

        Returns
        -------
        str
            The file's name.
        """

    def close(self) -> None:
        """
        Release the resources of the communicator; later calls are refused.

        Closing is local and cheap, unless calls on GPUs are pending. Then it waits until these
        calls have ended, with or without error, at most until their deadlines.

        Raises
        ------
        Error
            The error of a call on a GPU that was not raised before. The communicator is closed
            nevertheless. At the interpreter's end, and in a child of multiprocessing, the error is
            printed on standard error instead, and the exit code is 1.
        """

    def __enter__(self) -> Communicator: ...

    def __exit__(self, *exc_info: object) -> None: ...

    def all_reduce(self, x: ArrayT, out: Optional[ArrayT] = None, op: Union[Op, Operator] = 'sum', deadline: Timeout = None, stream: Stream = None) -> ArrayT:
        """
        Reduce arrays over all ranks; every rank gets the result.

        Parameters
        ----------
        x : array
            This rank's elements. All ranks pass the same number, of one dtype.
        out : array, optional
            Receives the result. It has the same number of elements; its shape may differ, because
            elements correspond in memory order. Without `out`, `x` receives the result.
        op : str or Operator
            "sum", "product" (or "prod"), "min", "max", "avg", "band", "bor", "bxor". 16-bit and
            8-bit floats accumulate in float32. On one host, ranks are combined in ascending order.
            For arrays in the host's memory it may be a `hocket.Operator`, which the program makes
            from a function.
        deadline : float or datetime.timedelta, optional
            Seconds this call may take; by default the communicator's `deadline`.

        Returns
        -------
        array
            `out`, or `x` if `out` is not given.

        Raises
        ------
        InvalidArgument
            For example, the array is read-only or not contiguous, or its dtype does not have this op.
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
        Reduce arrays over all ranks; only the root gets the result.

        Parameters
        ----------
        x : array
            This rank's elements. All ranks pass the same number, of one dtype.
        out : array, optional
            At the root: receives the result, as for `all_reduce`; without `out`, `x` receives it.
            Other ranks ignore it.
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
        Reduce arrays over the ranks from 0 to this rank: a prefix reduction.

        Rank r gets ((x0 op x1) op x2) ... op xr.

        Parameters
        ----------
        x : array
            This rank's elements. All ranks pass the same number, of one dtype.
        out : array, optional
            Receives the result, as for `all_reduce`. Without `out`, `x` receives it.
        op : str or Operator
            As for `all_reduce`. "avg" divides by the number of combined ranks, r + 1. If a rank has NaN, its
            result and those of all later ranks are NaN, also with "min" and "max".
        deadline
            As for `all_reduce`.

        Returns
        -------
        array
            `out`, or `x` if `out` is not given.
        """

    def scan_async(self, x: Array, out: Optional[Array] = None, op: Union[Op, Operator] = 'sum', deadline: Timeout = None, stream: Stream = None) -> Work:
        """Start `scan`; the arrays must be left alone until the Work is done."""

    def prepare_scan(self, x: Array, out: Optional[Array] = None, op: Union[Op, Operator] = 'sum', deadline: Timeout = None, stream: Stream = None) -> Prepared:
        """Check `scan` once, to call it again and again on the same arrays."""

    def exscan(self, x: ArrayT, out: Optional[ArrayT] = None, op: Union[Op, Operator] = 'sum', deadline: Timeout = None, stream: Stream = None) -> ArrayT:
        """
        Reduce arrays over the ranks from 0 to the one before this rank: an exclusive prefix
        reduction.

        Rank r gets ((x0 op x1) op x2) ... op x(r - 1). Rank 0 has no result: there `out`, or `x` without
        `out`, stays unchanged.

        Parameters
        ----------
        x : array
            This rank's elements. All ranks pass the same number, of one dtype.
        out : array, optional
            Receives the result, as for `all_reduce`. Without `out`, `x` receives it.
        op, deadline
            As for `scan`; "avg" divides by r.

        Returns
        -------
        array
            `out`, or `x` if `out` is not given.
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
            The shares of all ranks, one after the other, in C order. Without `out`, the shape of
            `x` is (size, \\*share) or (size * k, \\*rest). In the second case a share has the shape
            (k, \\*rest).
        out : array, optional
            Receives this rank's share: x.size / size elements of any shape. It may be the beginning of `x`.
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
        Sum shards so that the bits of the result depend on the shards alone.

        The shards of all ranks form one list, rank after rank. A fixed binary tree over the shards'
        numbers in this list adds them. So the result has the same bits for any number of ranks.

        Parameters
        ----------
        shards : array
            This rank's shards one after the other, in C order. Each has the size of `out`. A rank may have
            no shards.
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
        Find the least value of each element over all ranks, and the rank that has it.

        If several ranks have the least value, the lowest of these ranks is returned. 0.0 and -0.0
        count as equal. If any rank has a NaN, the value is NaN, and the rank is the lowest one with
        a NaN.

        Parameters
        ----------
        x : array
            This rank's elements. All ranks pass the same number, of one dtype, which is not
            complex. Arrays on a GPU are copied to the host, in the order of the stream, and
            compared there.
        index : array of integers, optional
            This rank's index of each element, such as its position in a larger array. Either all
            ranks pass an `index`, or no rank does.
        deadline : float or datetime.timedelta, optional
            Seconds this call may take; by default the communicator's `deadline`.
        stream : optional
            For arrays on a GPU: as for `all_reduce`.

        Returns
        -------
        value : array
            The least values, on every rank, in the shape and dtype of `x`.
        rank : array of int32
            The ranks that have the least values: a NumPy array, or for arrays on a GPU an array of
            their framework.
        index : array
            The indices that these ranks passed for the elements. It is returned only if `index` was
            given.
        """

    def argmin_async(self, x: Array, index: Optional[Array] = None, deadline: Timeout = None, stream: Stream = None) -> Work:
        """Start `argmin`; the arrays must be left alone until the Work is done."""

    def prepare_argmin(self, x: Array, index: Optional[Array] = None, deadline: Timeout = None, stream: Stream = None) -> Prepared:
        """Check `argmin` once, to call it again and again on the same arrays."""

    def argmax(self, x: Array, index: Optional[Array] = None, deadline: Timeout = None, stream: Stream = None) -> tuple[Any, ...]:
        """
        Find the greatest value of each element over all ranks, and its rank; as `argmin`.
        """

    def argmax_async(self, x: Array, index: Optional[Array] = None, deadline: Timeout = None, stream: Stream = None) -> Work:
        """Start `argmax`; the arrays must be left alone until the Work is done."""

    def prepare_argmax(self, x: Array, index: Optional[Array] = None, deadline: Timeout = None, stream: Stream = None) -> Prepared:
        """Check `argmax` once, to call it again and again on the same arrays."""

    def broadcast(self, x: ArrayT, root: int = 0, deadline: Timeout = None, stream: Stream = None) -> ArrayT:
        """
        Send the root's array to all ranks, in place: on the other ranks, `x` receives it.

        Parameters
        ----------
        x : array
            At the root, the array to send, which may be read-only. On other ranks, the array that
            receives the data. All have the same number of elements, dtype and order of axes; shapes
            may differ.
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
            This rank's elements, in C order. All ranks pass the same number, of one dtype.
        out : array, optional
            Receives size * x.size elements, rank after rank, in any shape. To work in place pass
            ``x=out[rank]``.

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
            This rank's elements, in C order. All ranks pass the same number, of one dtype.
        out : array, optional
            At the root: receives size * x.size elements, rank after rank, in any shape. Other ranks
            ignore it. To work in place, the root passes ``x=out[root]``.
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
        Distribute the entries of the root's array, one to each rank.

        Parameters
        ----------
        x : array, optional
            At the root: size * share elements in C order, rank after rank; without `out` its shape
            is (size, \\*share). Other ranks ignore it.
        out : array
            Receives this rank's share, in any shape. Required on ranks other than the root. To work
            in place, the root passes ``out=x[root]``.
        root : int
            The rank whose array is distributed.

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
        Send a part of `x` to each rank and receive a part from each rank.

        Parameters
        ----------
        x : array
            One part for each rank, all of equal size, in C order. Part r goes to rank r.
        out : array, optional
            Receives the parts: part r comes from rank r. It has the size of `x`, in any shape; it
            may be `x` itself.

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
        Wait until all ranks have made this call.

        Parameters
        ----------
        deadline : float or datetime.timedelta, optional
            Seconds this call may take; by default the communicator's `deadline`.
        stream : stream or int, optional
            If a GPU's stream is given, the ranks' streams synchronize instead of the ranks. The
            call returns at once, and later work on this stream waits until all ranks' streams have
            reached the barrier.
        """

    def barrier_async(self, deadline: Timeout = None, stream: Stream = None) -> Work:
        """Start a `barrier`."""

    def all_gather_v(self, x: Array, out: Union[Array, Sequence[Array], None] = None, counts: Optional[Sequence[int]] = None, deadline: Timeout = None, stream: Stream = None) -> Array:
        """
        Collect the rows of all ranks on every rank, in uneven parts: ranks may have different numbers of rows.

        Parameters
        ----------
        x : array
            This rank's rows. The shape of a row is the same on every rank.
        out : array or list of arrays, optional
            Receives all rows, rank after rank. A list has one array for each rank, in C order and
            in host memory. The rows of a rank are received directly into its array.
        counts : sequence of int, optional
            Number of rows of each rank. Either all ranks pass it or no rank does. Without it, a
            small call first exchanges the numbers; `all_gather_v_async` waits for this small call.

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
        Collect the rows of all ranks at the root, in uneven parts: ranks may have different numbers of rows.

        Parameters are those of `all_gather_v`. Only the root's `out` is used; other ranks get None.
        """

    def gather_v_async(self, x: Array, out: Union[Array, Sequence[Array], None] = None, counts: Optional[Sequence[int]] = None, root: int = 0, deadline: Timeout = None, stream: Stream = None) -> Work:
        """
        Start `gather_v`; the arrays must be left alone until the Work is done.
        """

    def scatter_v(self, x: Union[Array, Sequence[Array], None] = None, out: Optional[Array] = None, counts: Optional[Sequence[int]] = None, root: int = 0, deadline: Timeout = None, stream: Stream = None) -> Array:
        """
        Distribute the rows of the root's array in uneven parts: counts[r] rows to rank r.

        Parameters
        ----------
        x : array or list of arrays, optional
            At the root: all rows, rank after rank, or a list with one array for each rank. Other
            ranks ignore it.
        out : array
            Receives this rank's rows. Required on ranks other than the root.
        counts : sequence of int, optional
            At the root: the number of rows for each rank. By default the rows are split evenly; if
            there is a remainder, the first ranks get one row more. For a list: numbers of elements,
            by default those of its arrays.

        Returns
        -------
        array
            `out`, or at the root a new array with its rows.
        """

    def scatter_v_async(self, x: Union[Array, Sequence[Array], None] = None, out: Optional[Array] = None, counts: Optional[Sequence[int]] = None, root: int = 0, deadline: Timeout = None, stream: Stream = None) -> Work:
        """
        Start `scatter_v`; the arrays must be left alone until the Work is done.
        """

    def all_to_all_v(self, x: Union[Array, Sequence[Array]], counts: Optional[Sequence[int]] = None, out: Union[Array, Sequence[Array], None] = None, out_counts: Optional[Sequence[int]] = None, deadline: Timeout = None, stream: Stream = None) -> Array:
        """
        Send counts[r] rows of `x` to rank r and receive rows from each rank.

        Parameters
        ----------
        x : array or list of arrays
            The rows for all ranks, rank after rank; or a list with one array for each rank, in host
            memory.
        counts : sequence of int
            Number of rows for each rank. For a list: numbers of elements, by default those of its arrays.
        out : array or list of arrays, optional
            Receives the rows, rank after rank; or a list with one array for each rank.
        out_counts : sequence of int, optional
            Number of rows from each rank. Either all ranks pass it or no rank does. Without it, a
            small call first exchanges the numbers.

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
            The rows of all ranks, rank after rank. The shape is the same on every rank.
        out : array, optional
            Receives this rank's rows.
        counts : sequence of int, optional
            Number of rows of each rank. Without `counts`, a small call first exchanges the numbers
            of rows of all ranks' `out`. Without `counts` and `out`, the rows are split evenly; if
            there is a remainder, the first ranks get one row more.

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

        Messages are matched by peer, tag and order. Their order is independent of the order of
        collectives.

        Parameters
        ----------
        x : array
            The array to send. The receiver's array has the same number of elements and dtype. A
            NumPy array need not be contiguous: a contiguous copy in C order is sent.
        destination : int
            The rank to send to. With `hocket.NULL_RANK` (-2) nothing is sent.
        tag : int
            At least 0.
        """

    def recv(self, x: Array, source: int = -1, tag: int = 0, deadline: Timeout = None, stream: Stream = None, allow_shorter: bool = False) -> Received:
        """
        Receive an array into `x`.

        Parameters
        ----------
        x : array
            Receives the elements: as many as the sender sent, of the same dtype. A NumPy array need
            not be contiguous: it is filled in C order.
        source : int
            The rank to receive from, or `hocket.ANY_SOURCE` (-1) for the rank that sends first. With
            `hocket.NULL_RANK` (-2) nothing is received, and `x` stays unchanged.
        tag : int
            At least 0, or `hocket.ANY_TAG` (-1) for any tag; any tag works only for arrays on the
            host.
        allow_shorter : bool
            True: the message may have fewer elements than `x`. It fills the beginning of `x`, and
            the rest stays unchanged. It works only for arrays on the host.

        Returns
        -------
        Received
            Named tuple (source, tag, count): the sender, the tag, and the number of elements received.
        """

    def send_async(self, x: Array, destination: int, tag: int = 0, deadline: Timeout = None, stream: Stream = None) -> Work:
        """Start a `send`; the array must be left alone until the Work is done."""

    def recv_async(self, x: Array, source: int = -1, tag: int = 0, deadline: Timeout = None, stream: Stream = None, allow_shorter: bool = False) -> Work:
        """
        Start a `recv`. The result of the Work is `x`, and its `received` names the sender. If `x`
        is not contiguous, it is filled by the first method of the Work that returns that the call
        has ended.
        """

    def probe(self, source: int = -1, tag: int = 0, deadline: Timeout = None) -> Envelope:
        """
        Wait until a message for host memory has arrived, and describe it without receiving it.

        The next `recv` from that source with that tag receives the message, unless another thread
        receives it first. A message for `recv_object` appears as its first part, 256 elements of
        uint8.

        Parameters
        ----------
        source : int
            The rank that sends, or `hocket.ANY_SOURCE` (-1) for any rank.
        tag : int
            At least 0, or `hocket.ANY_TAG` (-1) for any tag.

        Returns
        -------
        Envelope
            Named tuple (source, tag, count, dtype): the sender, the tag, the number of elements,
            and the dtype as a string. An array of this count and dtype can receive the message.
        """

    def probe_now(self, source: int = -1, tag: int = 0) -> Optional[Envelope]:
        """`probe` without waiting; None if no message has arrived."""

    def receives(self, shape: Any, dtype: Any = 'float64', source: int = -1, tag: int = 0, count: Optional[int] = None, deadline: Timeout = None) -> AsyncIterator[tuple[Array, Received]]:
        """
        Receive messages one after the other: ``async for x, received in comm.receives(1000)``.

        A receive is pending only while the loop waits. So the program may leave the loop without
        cancelling a receive.

        Parameters
        ----------
        shape, dtype
            The shape and dtype of each message, which is received into a new NumPy array.
        source : int
            The rank to receive from; by default any rank.
        tag : int
            At least 0.
        count : int, optional
            Number of messages; by default the loop does not end.
        deadline : float or datetime.timedelta, optional
            Seconds that each message may take; by default the communicator's `deadline`.
        """

    def send_recv(self, x: ArrayT, destination: int, out: Optional[ArrayT] = None, source: Optional[int] = None, tag: int = 0, deadline: Timeout = None, stream: Stream = None, allow_shorter: bool = False) -> ArrayT:
        """
        Send to one rank and receive from one rank at the same time: an exchange, a ring, a shift.

        Parameters
        ----------
        x : array
            The array to send.
        destination : int
            The rank to send to.
        out : array, optional
            Receives the message, which has the same number of elements, in any shape. It may be `x` itself.
            Required if `source` is `hocket.NULL_RANK`, from which nothing is received.
        source : int, optional
            The rank to receive from; by default `destination`.
        tag : int
            At least 0.
        allow_shorter : bool
            True: the message may have fewer elements than `out`, and fills its beginning. Only for
            the host.

        Returns
        -------
        array
            `out`, or a new array of the shape and dtype of `x`. With `allow_shorter`, the elements that were
            received, along one axis.
        """

    def exchange(self, outgoing: Sequence[tuple[Array, int]], incoming: Sequence[tuple[Array, int]], tag: int = 0, deadline: Timeout = None, stream: Stream = None) -> None:
        """
        Send and receive any number of messages at the same time, whatever their order in the lists.

        Messages between two ranks are matched in the order of the lists. The other rank may use
        `exchange`, `send` or `recv`. On GPUs the call returns when the messages have been put on
        the stream.

        Parameters
        ----------
        outgoing : sequence of (array, int)
            The arrays to send, each with its destination.
        incoming : sequence of (array, int)
            The arrays to receive into, each with its source. One array may be in both lists.
        tag : int
            The tag of all messages, at least 0.
        """

    def all_reduce_coalesced(self, arrays: Sequence[Array], op: Op = 'sum', deadline: Timeout = None, stream: Stream = None) -> Sequence[Array]:
        """
        Like `all_reduce` of each array in place, in one call. The arrays may differ in dtype and size. All
        ranks pass the same list. Returns `arrays`.
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
        Sum or average floats over all ranks. Each element is sent with 8 bits. For slow networks.

        The result is the same on every rank. Let R be the sum over the ranks of (greatest - least)
        of the block in which an element lies. The error of a sum is at most R / 254, and the error
        of an average is at most this divided by the number of ranks. The rounding of float32 is
        added, because float64 is converted to it. A block has 1024 elements, counted from the
        beginning of each rank's share of ceil(x.size / size) elements. A block with an infinity or
        a NaN becomes NaN.

        Parameters
        ----------
        x : array
            Of float16, bfloat16, float32 or float64; reduced in place. An array on a GPU is copied
            to the host and back, in the order of its framework's current stream.
        op : str
            "sum" or "avg".
        deadline : float or datetime.timedelta, optional
            Seconds that each of the call's two steps may take.

        Returns
        -------
        array
            `x`.
        """

    def hierarchical_all_reduce(self, x: ArrayT, op: Op = 'sum', compressed: bool = False, deadline: Timeout = None) -> ArrayT:
        """
        Reduce in place in three steps: within each host, between the hosts' first ranks, and back.

        In an average, every rank has the same weight, no matter how many ranks its host has.

        Parameters
        ----------
        x : array
            Reduced in place. An array on a GPU is copied to the host and back, in the order of its
            framework's current stream.
        op : str
            As for `all_reduce`.
        compressed : bool
            True: between hosts, each element is sent with 8 bits, as in `compressed_all_reduce`.
            Its error bound applies, with hosts in place of ranks.
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
            The object to send at the root; other ranks ignore it. It may consist of None, bool,
            int, float, complex, str, bytes, bytearray, arrays, NumPy's scalars, and lists, tuples
            and dicts of these. All parts arrive with their types, except that arrays of other
            packages arrive as NumPy arrays. Subclasses of these types are refused. A list, dict,
            bytearray or array that occurs twice is refused, too.
        root : int
            The rank that sends.
        allow_pickle : bool, optional
            True: an object that holds anything else is pickled as a whole. Unpickling runs code
            that the sender chooses, so all ranks must be trusted. All ranks must pass the same
            value. By default the communicator's `allow_pickle`.

        Returns
        -------
        object
            The same on all ranks. At the root it is `obj` itself, unless arrays in it arrive as
            NumPy arrays.
        """

    def broadcast_object_async(self, obj: Any = None, root: int = 0, allow_pickle: Optional[bool] = None, deadline: Timeout = None) -> Work:
        """
        Start a `broadcast_object`; the Work's `wait()` returns the object. The root's object is
        read at once.
        """

    def gather_object(self, obj: Any, root: int = 0, allow_pickle: Optional[bool] = None, deadline: Timeout = None) -> Optional[list[Any]]:
        """
        Return the objects of all ranks, in order, at the root; None on other ranks. For the
        arguments see `broadcast_object`.
        """

    def gather_object_async(self, obj: Any, root: int = 0, allow_pickle: Optional[bool] = None, deadline: Timeout = None) -> Work:
        """
        Start a `gather_object`; the Work's `wait()` returns the objects at the root.
        """

    def all_gather_object(self, obj: Any, allow_pickle: Optional[bool] = None, deadline: Timeout = None) -> list[Any]:
        """
        Return the objects of all ranks, in order, on every rank. For the arguments see
        `broadcast_object`.
        """

    def all_gather_object_async(self, obj: Any, allow_pickle: Optional[bool] = None, deadline: Timeout = None) -> Work:
        """Start an `all_gather_object`; the Work's `wait()` returns the objects."""

    def scatter_object(self, objects: Optional[Sequence[Any]] = None, root: int = 0, allow_pickle: Optional[bool] = None, deadline: Timeout = None) -> Any:
        """
        Rank r gets objects[r] of the root. For the other arguments see `broadcast_object`.
        """

    def scatter_object_async(self, objects: Optional[Sequence[Any]] = None, root: int = 0, allow_pickle: Optional[bool] = None, deadline: Timeout = None) -> Work:
        """
        Start a `scatter_object`; the Work's `wait()` returns this rank's object.
        """

    def send_object(self, obj: Any, destination: int, tag: int = 0, allow_pickle: Optional[bool] = None, deadline: Timeout = None) -> None:
        """
        Send an object to one rank, which receives it by `recv_object`.

        `obj` and `allow_pickle` are those of `broadcast_object`, `destination` and `tag` those of `send`.
        """

    def send_object_async(self, obj: Any, destination: int, tag: int = 0, allow_pickle: Optional[bool] = None, deadline: Timeout = None) -> Work:
        """
        Start a `send_object`. The object is read at once, and may be changed afterwards.
        """

    def recv_object(self, source: int = -1, tag: int = 0, allow_pickle: Optional[bool] = None, deadline: Timeout = None) -> ReceivedObject:
        """
        Receive an object that a rank sent by `send_object`.

        Parameters
        ----------
        source : int
            The rank to receive from; `hocket.ANY_SOURCE` (-1) for the rank that sends first.
        tag : int
            At least 0, or `hocket.ANY_TAG` (-1) for any tag. The first matching message must be an
            object.
        allow_pickle : bool, optional
            True: also accept objects that were sent by pickle; see `broadcast_object`.

        Returns
        -------
        ReceivedObject
            Named tuple (object, source, tag).
        """

    def recv_object_async(self, source: int = -1, tag: int = 0, allow_pickle: Optional[bool] = None, deadline: Timeout = None) -> Work:
        """Start a `recv_object`; the Work's `wait()` returns the ReceivedObject."""

    @property
    def symmetric(self) -> SymmetricMemory:
        """
        Makes arrays that peers can reach, so that collectives on them copy nothing.
        """

class _NamedCalls:
    def __enter__(self) -> None: ...

    def __exit__(self, *exc_info: object) -> None: ...

class _Allocation:
    """Symmetric memory; the base of arrays in it."""

class GpuArray:
    """
    Symmetric memory of a GPU, this rank's or a peer's.

    hocket's calls take it directly. ``cupy.from_dlpack(a)`` and ``torch.from_dlpack(a)`` make an
    array that shares its memory and keeps it alive. ``cupy.asarray(a)`` does the same for this
    rank's memory. For a peer's memory it makes a copy, because that memory is on another GPU.
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents of all axes."""

    @property
    def dtype(self) -> str:
        """Its name."""

    @property
    def nbytes(self) -> int:
        """Number of bytes."""

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

        Collective: all ranks pass the same shape and dtype.

        Parameters
        ----------
        shape : int or sequence of int
        dtype : str or dtype
            "float32", numpy.float32, torch.bfloat16, ...; "bfloat16" and the 8-bit floats need ml_dtypes.

        memory : "host" or "cuda", optional
            The memory of the array. By default "cuda" if the communicator has made a call on GPUs, else
            "host".
        heap : "hocket" or "nvshmem", optional
            The owner of memory on GPUs; by default hocket. NVSHMEM's device functions need arrays
            of NVSHMEM's heap, if that library is installed. The first call with "nvshmem" starts
            NVSHMEM, with the communicator's ranks as PEs. Later calls need a communicator of the
            same ranks. Communicators of some of these ranks can use the arrays, too.

        Returns
        -------
        numpy.ndarray or GpuArray
            Its memory lives until the last rank has dropped the last view of the array. NVSHMEM's
            memory is returned to its heap at the next call with "nvshmem".

        Raises
        ------
        InvalidArgument
            On all ranks: the ranks are on several hosts, there is no memory or no NVSHMEM, or NVSHMEM was
            started with other ranks.
        """

    def peer(self, array: Any, rank: int) -> Any:
        """
        Return the array of another rank, as memory that this rank can read and write.

        Parameters
        ----------
        array : array
            This rank's array, or a contiguous view of it; on a GPU, an array of any framework.
        rank : int
            The rank, in this communicator.

        Returns
        -------
        numpy.ndarray or GpuArray
            An array of the same shape. Its contents are defined only between calls that order the
            ranks, such as a barrier or a collective.

        Raises
        ------
        InvalidArgument
            The array is not symmetric, or the memory of that rank is not mapped here. The latter
            may happen with NVSHMEM's heap.
        """

    def free(self, array: Any, deadline: Timeout = None) -> None:
        """
        End the symmetry of an array in GPUs' memory. It becomes an ordinary array on all ranks.

        Collective; raises `Mismatch` if ranks pass different arrays. The memory is freed when its
        last view is dropped.
        """

    def nvshmem_team(self, deadline: Timeout = None) -> int:
        """
        Return NVSHMEM's team of this communicator's ranks, for NVSHMEM's device functions.

        The first call is collective, and needs an earlier ``empty(..., heap="nvshmem")``, which starts
        NVSHMEM. PE i of the team is rank i. The team lives as long as NVSHMEM, that is, as the
        process.

        Returns
        -------
        int
            An ``nvshmem_team_t``.
        """

def _tell_places(describes: object) -> None: ...

def _run_time() -> float:
    """Seconds in which this process could run, as deadlines count them."""

def init(rank: Optional[int] = None, size: Optional[int] = None, address: Optional[str] = None, key: Optional[Union[bytes, str, PathLike[str]]] = None, timeout: Timeout = None, deadline: Timeout = None, engines: Optional[Iterable[str]] = None, bootstrap: Optional[Bootstrap] = None, mpi: Any = None, name: str = 'world', join: Optional[str] = None) -> Communicator:
    """Use it through `hocket.init`."""

def _tell_end(why: str) -> None: ...

def _tell_trouble(what: str) -> None: ...

def _begin_end() -> None: ...

def _finish_calls() -> bool: ...

def _check_stream(stream: Stream) -> None:
    """
    Raise an error if `stream` is no stream. For calls that use it only in their last part.
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
    The runtime of libraries that compute on distributed arrays: this process's device, and the
    processes that take part. A process has at most one context at a time; see `Context.initialize`.
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
            This process has a context already: call `Context.finalize` first.
        """

    @staticmethod
    def current() -> Optional[Context]:
        """The context that was made and not finalized, or None."""

    @staticmethod
    def finalize() -> None:
        """
        Wait for the other processes and end the context. Does nothing if there is none.
        """

    @property
    def communicator(self) -> Communicator:
        """All processes of the context. Usable until its end."""

    @property
    def rank(self) -> int:
        """This process's number, from 0."""

    @property
    def size(self) -> int:
        """Number of processes."""

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
    Serves a store of keys and values. It is made for rendezvous, not for bulk data.

    Runs in a thread of this process until `close`, or until nothing refers to it.

    Parameters
    ----------
    address : str
        An address of this host, or "unix:NAME", which the processes of this user alone can reach.
    port : int
        0: the system chooses.
    key : bytes or path, optional
        The secret that clients must know: 32 bytes, or a file made by ``hocket key FILE``. Not
        needed for "unix:".
    job : str
        A name that clients must pass, too. It is not secret.
    trust_network : bool
        True: serves every process that can reach the port.
    """

    def __init__(self, address: str = '127.0.0.1', port: int = 0, key: Optional[Union[bytes, str, PathLike[str]]] = None, job: str = '', trust_network: bool = False) -> None: ...

    @property
    def address(self) -> str:
        """The address for `connect_store`, such as "127.0.0.1:40123"."""

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
        """Add to a counter, which begins at 0; return the new value."""

    def compare_and_set(self, key: str, expected: Optional[bytes], desired: bytes) -> Optional[bytes]:
        """
        Set the key to `desired` if it holds `expected`; None means that the key does not exist.
        Returns the value before the call. The key was set if and only if this value equals
        `expected`.
        """

    def erase(self, key: str) -> bool:
        """Erase a key. True if it existed."""

    def close(self) -> None:
        """Close the connection. May be called again."""

def connect_store(address: str, key: Optional[Union[bytes, str, PathLike[str]]] = None, job: str = '', timeout: Timeout = None, trust_network: bool = False) -> Store:
    """
    Connect to a `StoreServer`.

    Parameters
    ----------
    address : str
        "host:port" or "unix:NAME".
    key, job, trust_network
        The same values as those of the server.
    timeout : float or datetime.timedelta, optional
        Seconds for connecting, and the default for calls that wait; 300 by default. While no server
        answers, connecting is retried.

    Raises
    ------
    RendezvousError
        There is no server, or the server and this process do not trust each other.
    """
