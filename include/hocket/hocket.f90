! hocket/c.h for Fortran, by iso_c_binding. Compile it with the compiler of the program, because
! each compiler has its own format of compiled modules. Link with -lhocket; see docs/c-api.md.
!
! Handles are type(c_ptr), c_null_ptr at first. Functions return HOCKET_OK or the code of an error.
! hocket_message() returns the text of the last error. Ranks and roots are numbered from 0, as in C.
! Where C takes a null pointer, pass c_null_ptr. Options are passed by c_loc.
module hocket
  use, intrinsic :: iso_c_binding
  implicit none

  enum, bind(c)
    enumerator :: HOCKET_OK = 0, HOCKET_INVALID_ARGUMENT, HOCKET_PEER_DIED, &
      HOCKET_DEADLINE_EXCEEDED, HOCKET_MISMATCH, HOCKET_ABORTED, HOCKET_RENDEZVOUS, &
      HOCKET_SYSTEM, HOCKET_DEVICE, HOCKET_NO_MEMORY, HOCKET_INTERNAL, &
      HOCKET_DEADLOCK
  end enum
  enum, bind(c)
    enumerator :: HOCKET_BOOL = 0, HOCKET_INT8, HOCKET_INT16, HOCKET_INT32, HOCKET_INT64, &
      HOCKET_UINT8, HOCKET_UINT16, HOCKET_UINT32, HOCKET_UINT64, HOCKET_FLOAT16, &
      HOCKET_BFLOAT16, HOCKET_FLOAT32, HOCKET_FLOAT64, HOCKET_COMPLEX64, HOCKET_COMPLEX128, &
      HOCKET_FLOAT8_E4M3, HOCKET_FLOAT8_E5M2
  end enum
  enum, bind(c)
    enumerator :: HOCKET_SUM = 0, HOCKET_PRODUCT, HOCKET_MIN, HOCKET_MAX, HOCKET_AVG, &
      HOCKET_BIT_AND, HOCKET_BIT_OR, HOCKET_BIT_XOR
  end enum
  enum, bind(c)
    enumerator :: HOCKET_MEMORY_DEFAULT = 0, HOCKET_MEMORY_HOST, HOCKET_MEMORY_CUDA
  end enum
  integer(c_int64_t), parameter :: HOCKET_FOREVER = huge(0_c_int64_t)
  integer(c_int32_t), parameter :: HOCKET_ANY_SOURCE = -1
  integer(c_int32_t), parameter :: HOCKET_ANY_TAG = -1
  integer(c_int32_t), parameter :: HOCKET_NULL_RANK = -2
  integer(c_int32_t), parameter :: HOCKET_MOST_AXES = 8

  type, bind(c) :: hocket_array
    type(c_ptr) :: data = c_null_ptr
    integer(c_size_t) :: count = 0
    integer(c_int32_t) :: dtype = HOCKET_UINT8
    integer(c_int32_t) :: memory = HOCKET_MEMORY_HOST
  end type

  ! Options contain their size. A field that is not set has its default.
  type, bind(c) :: hocket_init_options
    integer(c_size_t) :: size = 72
    integer(c_int32_t) :: ranks = 0
    integer(c_int32_t) :: rank = 0
    type(c_ptr) :: address = c_null_ptr
    type(c_ptr) :: key_file = c_null_ptr
    integer(c_int64_t) :: timeout_ns = 0
    integer(c_int64_t) :: deadline_ns = 0
    type(c_ptr) :: engines = c_null_ptr
    type(c_ptr) :: name = c_null_ptr
    type(c_ptr) :: join = c_null_ptr
  end type
  type, bind(c) :: hocket_call_options
    integer(c_size_t) :: size = 40
    integer(c_int64_t) :: deadline_ns = 0
    type(c_ptr) :: stream = c_null_ptr
    integer(c_int32_t) :: on_stream = 0
    integer(c_int32_t) :: allow_shorter = 0
    type(c_ptr) :: received = c_null_ptr
  end type
  ! `combine` is c_funloc of a function with bind(c). Its arguments are (left, right, count,
  ! context), all by value. `count` is integer(c_size_t), and the others are type(c_ptr). It
  ! replaces the elements at `left` and returns integer(c_int): 0, or another number if it failed.
  type, bind(c) :: hocket_operator
    integer(c_size_t) :: size = 32
    type(c_funptr) :: combine = c_null_funptr
    type(c_ptr) :: context = c_null_ptr
    integer(c_size_t) :: unit = 1
  end type
  type, bind(c) :: hocket_received
    integer(c_int32_t) :: source = -1
    integer(c_int32_t) :: tag = 0
    integer(c_size_t) :: count = 0
    integer(c_int32_t) :: dtype = HOCKET_UINT8
  end type
  ! A view of an array with several axes, as C has it: the last axis travels first. For Fortran's
  ! order list the axes from the last to the first. `strides` are in elements.
  type, bind(c) :: hocket_strided
    type(c_ptr) :: data = c_null_ptr
    integer(c_int32_t) :: dtype = HOCKET_UINT8
    integer(c_int32_t) :: axes = 0
    integer(c_size_t) :: shape(HOCKET_MOST_AXES) = 0
    integer(c_ptrdiff_t) :: strides(HOCKET_MOST_AXES) = 0
  end type
  type, bind(c) :: hocket_halo
    integer(c_size_t) :: before = 1
    integer(c_size_t) :: behind = 1
  end type
  type, bind(c) :: hocket_rebuild_options
    integer(c_size_t) :: size = 24
    integer(c_int64_t) :: deadline_ns = 0
    integer(c_int32_t) :: exclude_missing = 0
    integer(c_int32_t) :: allow_minority = 0
  end type
  type, bind(c) :: hocket_admit_options
    integer(c_size_t) :: size = 40
    integer(c_int64_t) :: patience_ns = 0
    integer(c_int32_t) :: newcomers = 0
    integer(c_int32_t) :: close_up = 0
    integer(c_int64_t) :: deadline_ns = 0
    integer(c_int32_t) :: exclude_missing = 0
    integer(c_int32_t) :: allow_minority = 0
  end type
  type, bind(c) :: hocket_symmetric_options
    integer(c_size_t) :: size = 24
    integer(c_int64_t) :: deadline_ns = 0
    integer(c_int32_t) :: memory = HOCKET_MEMORY_DEFAULT
    integer(c_int32_t) :: nvshmem = 0
  end type

  ! A view of an array, a part of an array, or a single variable of the program, with the attribute
  ! target. A call refuses the view of an array that is not contiguous or not allocated. If the
  ! compiler finds no specific function for it, see docs/c-api.md.
  interface hocket_view
    module procedure view_int8, view_int16, view_int32, view_int64, view_real32, view_real64, &
      view_complex64, view_complex128, view_logical, view_character
  end interface
  ! Calls refuse a view that has one of these values in `memory`.
  integer(c_int32_t), parameter, private :: NOT_CONTIGUOUS = -1
  integer(c_int32_t), parameter, private :: NOT_ALLOCATED = -2

  ! Arrays are targets in these interfaces. So the compiler knows that a call, and the work that it
  ! starts, may read and write them.
  interface
    type(c_ptr) function hocket_version() bind(c)
      import
    end function
    integer(c_size_t) function hocket_dtype_size(dtype) bind(c)
      import
      integer(c_int32_t), value :: dtype
    end function
    type(c_ptr) function hocket_dtype_name(dtype) bind(c)
      import
      integer(c_int32_t), value :: dtype
    end function
    type(c_ptr) function hocket_op_name(op) bind(c)
      import
      integer(c_int32_t), value :: op
    end function
    type(c_ptr) function hocket_code_name(code) bind(c)
      import
      integer(c_int), value :: code
    end function
    type(c_ptr) function hocket_error_message() bind(c)
      import
    end function
    integer(c_int) function hocket_error_details(info) bind(c)
      import
      type(c_ptr), value :: info
    end function
    integer(c_int) function hocket_init(options, world) bind(c)
      import
      type(hocket_init_options), intent(in), optional :: options
      type(c_ptr), intent(inout) :: world
    end function
    integer(c_int) function hocket_comm_rank(comm, rank) bind(c)
      import
      type(c_ptr), value :: comm
      integer(c_int), intent(out) :: rank
    end function
    integer(c_int) function hocket_comm_size(comm, size) bind(c)
      import
      type(c_ptr), value :: comm
      integer(c_int), intent(out) :: size
    end function
    integer(c_int) function hocket_comm_epoch(comm, epoch) bind(c)
      import
      type(c_ptr), value :: comm
      integer(c_int), intent(out) :: epoch
    end function
    integer(c_int) function hocket_comm_name(comm, name) bind(c)
      import
      type(c_ptr), value :: comm
      type(c_ptr), intent(out) :: name
    end function
    integer(c_int) function hocket_comm_world_ranks(comm, ranks, length) bind(c)
      import
      type(c_ptr), value :: comm
      integer(c_int32_t), intent(out) :: ranks(*)
      integer(c_size_t), value :: length
    end function
    integer(c_int) function hocket_comm_hosts(comm, hosts, length) bind(c)
      import
      type(c_ptr), value :: comm
      integer(c_int32_t), intent(out) :: hosts(*)
      integer(c_size_t), value :: length
    end function
    integer(c_int) function hocket_comm_deadline(comm, deadline_ns) bind(c)
      import
      type(c_ptr), value :: comm
      integer(c_int64_t), intent(out) :: deadline_ns
    end function
    integer(c_int) function hocket_comm_set_deadline(comm, deadline_ns) bind(c)
      import
      type(c_ptr), value :: comm
      integer(c_int64_t), value :: deadline_ns
    end function
    integer(c_int) function hocket_comm_audited(comm, audited) bind(c)
      import
      type(c_ptr), value :: comm
      integer(c_int), intent(out) :: audited
    end function
    integer(c_int) function hocket_comm_set_audited(comm, audited) bind(c)
      import
      type(c_ptr), value :: comm
      integer(c_int), value :: audited
    end function
    integer(c_int) function hocket_comm_status(comm) bind(c)
      import
      type(c_ptr), value :: comm
    end function
    integer(c_int) function hocket_comm_abort(comm, reason) bind(c)
      import
      type(c_ptr), value :: comm
      character(kind=c_char), intent(in) :: reason(*)
    end function
    integer(c_int) function hocket_comm_close(comm) bind(c)
      import
      type(c_ptr), value :: comm
    end function
    subroutine hocket_comm_free(comm) bind(c)
      import
      type(c_ptr), intent(inout) :: comm
    end subroutine
    integer(c_int) function hocket_new_group(comm, ranks, length, options, group) bind(c)
      import
      type(c_ptr), value :: comm
      integer(c_int32_t), intent(in) :: ranks(*)
      integer(c_size_t), value :: length
      type(hocket_call_options), intent(in), optional :: options
      type(c_ptr), intent(inout) :: group
    end function
    integer(c_int) function hocket_split(comm, color, key, options, group) bind(c)
      import
      type(c_ptr), value :: comm
      integer(c_int32_t), value :: color, key
      type(hocket_call_options), intent(in), optional :: options
      type(c_ptr), intent(inout) :: group
    end function
    integer(c_int) function hocket_duplicate(comm, options, copy) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_call_options), intent(in), optional :: options
      type(c_ptr), intent(inout) :: copy
    end function
    integer(c_int) function hocket_intra_node(comm, group) bind(c)
      import
      type(c_ptr), value :: comm
      type(c_ptr), intent(inout) :: group
    end function
    integer(c_int) function hocket_inter_node(comm, group) bind(c)
      import
      type(c_ptr), value :: comm
      type(c_ptr), intent(inout) :: group
    end function
    integer(c_int) function hocket_rebuild(comm, options, next) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_rebuild_options), intent(in), optional :: options
      type(c_ptr), intent(inout) :: next
    end function
    integer(c_int) function hocket_admit(comm, options, next) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_admit_options), intent(in), optional :: options
      type(c_ptr), intent(inout) :: next
    end function
    integer(c_int) function hocket_comm_newcomers(comm, ranks, length, count) bind(c)
      import
      type(c_ptr), value :: comm
      integer(c_int32_t), intent(inout) :: ranks(*)
      integer(c_size_t), value :: length
      integer(c_size_t), intent(out) :: count
    end function
    integer(c_int) function hocket_all_reduce(comm, in, out, op, options) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_array), intent(in), target, optional :: in, out
      integer(c_int32_t), value :: op
      type(hocket_call_options), intent(in), optional :: options
    end function
    integer(c_int) function hocket_all_reduce_async(comm, in, out, op, options, work) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_array), intent(in), target, optional :: in, out
      integer(c_int32_t), value :: op
      type(hocket_call_options), intent(in), optional :: options
      type(c_ptr), intent(inout) :: work
    end function
    integer(c_int) function hocket_reduce(comm, in, out, op, root, options) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_array), intent(in), target, optional :: in, out
      integer(c_int32_t), value :: op, root
      type(hocket_call_options), intent(in), optional :: options
    end function
    integer(c_int) function hocket_reduce_async(comm, in, out, op, root, options, work) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_array), intent(in), target, optional :: in, out
      integer(c_int32_t), value :: op, root
      type(hocket_call_options), intent(in), optional :: options
      type(c_ptr), intent(inout) :: work
    end function
    integer(c_int) function hocket_scan(comm, in, out, op, options) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_array), intent(in), target, optional :: in, out
      integer(c_int32_t), value :: op
      type(hocket_call_options), intent(in), optional :: options
    end function
    integer(c_int) function hocket_scan_async(comm, in, out, op, options, work) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_array), intent(in), target, optional :: in, out
      integer(c_int32_t), value :: op
      type(hocket_call_options), intent(in), optional :: options
      type(c_ptr), intent(inout) :: work
    end function
    integer(c_int) function hocket_exscan(comm, in, out, op, options) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_array), intent(in), target, optional :: in, out
      integer(c_int32_t), value :: op
      type(hocket_call_options), intent(in), optional :: options
    end function
    integer(c_int) function hocket_exscan_async(comm, in, out, op, options, work) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_array), intent(in), target, optional :: in, out
      integer(c_int32_t), value :: op
      type(hocket_call_options), intent(in), optional :: options
      type(c_ptr), intent(inout) :: work
    end function
    integer(c_int) function hocket_reduce_scatter(comm, in, out, op, options) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_array), intent(in), target, optional :: in, out
      integer(c_int32_t), value :: op
      type(hocket_call_options), intent(in), optional :: options
    end function
    integer(c_int) function hocket_reduce_scatter_async(comm, in, out, op, options, work) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_array), intent(in), target, optional :: in, out
      integer(c_int32_t), value :: op
      type(hocket_call_options), intent(in), optional :: options
      type(c_ptr), intent(inout) :: work
    end function
    integer(c_int) function hocket_broadcast(comm, in, out, root, options) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_array), intent(in), target, optional :: in, out
      integer(c_int32_t), value :: root
      type(hocket_call_options), intent(in), optional :: options
    end function
    integer(c_int) function hocket_broadcast_async(comm, in, out, root, options, work) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_array), intent(in), target, optional :: in, out
      integer(c_int32_t), value :: root
      type(hocket_call_options), intent(in), optional :: options
      type(c_ptr), intent(inout) :: work
    end function
    integer(c_int) function hocket_all_gather(comm, in, out, options) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_array), intent(in), target, optional :: in, out
      type(hocket_call_options), intent(in), optional :: options
    end function
    integer(c_int) function hocket_all_gather_async(comm, in, out, options, work) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_array), intent(in), target, optional :: in, out
      type(hocket_call_options), intent(in), optional :: options
      type(c_ptr), intent(inout) :: work
    end function
    integer(c_int) function hocket_gather(comm, in, out, root, options) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_array), intent(in), target, optional :: in, out
      integer(c_int32_t), value :: root
      type(hocket_call_options), intent(in), optional :: options
    end function
    integer(c_int) function hocket_gather_async(comm, in, out, root, options, work) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_array), intent(in), target, optional :: in, out
      integer(c_int32_t), value :: root
      type(hocket_call_options), intent(in), optional :: options
      type(c_ptr), intent(inout) :: work
    end function
    integer(c_int) function hocket_scatter(comm, in, out, root, options) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_array), intent(in), target, optional :: in, out
      integer(c_int32_t), value :: root
      type(hocket_call_options), intent(in), optional :: options
    end function
    integer(c_int) function hocket_scatter_async(comm, in, out, root, options, work) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_array), intent(in), target, optional :: in, out
      integer(c_int32_t), value :: root
      type(hocket_call_options), intent(in), optional :: options
      type(c_ptr), intent(inout) :: work
    end function
    integer(c_int) function hocket_all_to_all(comm, in, out, options) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_array), intent(in), target, optional :: in, out
      type(hocket_call_options), intent(in), optional :: options
    end function
    integer(c_int) function hocket_all_to_all_async(comm, in, out, options, work) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_array), intent(in), target, optional :: in, out
      type(hocket_call_options), intent(in), optional :: options
      type(c_ptr), intent(inout) :: work
    end function
    integer(c_int) function hocket_barrier(comm, options) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_call_options), intent(in), optional :: options
    end function
    integer(c_int) function hocket_barrier_async(comm, options, work) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_call_options), intent(in), optional :: options
      type(c_ptr), intent(inout) :: work
    end function
    integer(c_int) function hocket_all_gather_v(comm, in, out, parts, options) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_array), intent(in), target, optional :: in, out
      type(c_ptr), value :: parts
      type(hocket_call_options), intent(in), optional :: options
    end function
    integer(c_int) function hocket_all_gather_v_async(comm, in, out, parts, options, work) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_array), intent(in), target, optional :: in, out
      type(c_ptr), value :: parts
      type(hocket_call_options), intent(in), optional :: options
      type(c_ptr), intent(inout) :: work
    end function
    integer(c_int) function hocket_gather_v(comm, in, out, parts, root, options) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_array), intent(in), target, optional :: in, out
      type(c_ptr), value :: parts
      integer(c_int32_t), value :: root
      type(hocket_call_options), intent(in), optional :: options
    end function
    integer(c_int) function hocket_gather_v_async(comm, in, out, parts, root, options, work) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_array), intent(in), target, optional :: in, out
      type(c_ptr), value :: parts
      integer(c_int32_t), value :: root
      type(hocket_call_options), intent(in), optional :: options
      type(c_ptr), intent(inout) :: work
    end function
    integer(c_int) function hocket_scatter_v(comm, in, parts, out, root, options) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_array), intent(in), target, optional :: in
      type(c_ptr), value :: parts
      type(hocket_array), intent(in), target, optional :: out
      integer(c_int32_t), value :: root
      type(hocket_call_options), intent(in), optional :: options
    end function
    integer(c_int) function hocket_scatter_v_async( &
      comm, in, parts, out, root, options, work) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_array), intent(in), target, optional :: in
      type(c_ptr), value :: parts
      type(hocket_array), intent(in), target, optional :: out
      integer(c_int32_t), value :: root
      type(hocket_call_options), intent(in), optional :: options
      type(c_ptr), intent(inout) :: work
    end function
    integer(c_int) function hocket_all_to_all_v(comm, in, in_parts, out, out_parts, options) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_array), intent(in), target, optional :: in
      type(c_ptr), value :: in_parts
      type(hocket_array), intent(in), target, optional :: out
      type(c_ptr), value :: out_parts
      type(hocket_call_options), intent(in), optional :: options
    end function
    integer(c_int) function hocket_all_to_all_v_async( &
      comm, in, in_parts, out, out_parts, options, work) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_array), intent(in), target, optional :: in
      type(c_ptr), value :: in_parts
      type(hocket_array), intent(in), target, optional :: out
      type(c_ptr), value :: out_parts
      type(hocket_call_options), intent(in), optional :: options
      type(c_ptr), intent(inout) :: work
    end function
    integer(c_int) function hocket_reduce_scatter_v( &
      comm, in, out, counts, length, op, options) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_array), intent(in), target, optional :: in, out
      integer(c_size_t), intent(in) :: counts(*)
      integer(c_size_t), value :: length
      integer(c_int32_t), value :: op
      type(hocket_call_options), intent(in), optional :: options
    end function
    integer(c_int) function hocket_reduce_scatter_v_async( &
      comm, in, out, counts, length, op, options, work) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_array), intent(in), target, optional :: in, out
      integer(c_size_t), intent(in) :: counts(*)
      integer(c_size_t), value :: length
      integer(c_int32_t), value :: op
      type(hocket_call_options), intent(in), optional :: options
      type(c_ptr), intent(inout) :: work
    end function
    integer(c_int) function hocket_all_reduce_by(comm, in, out, op, options) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_array), intent(in), target, optional :: in, out
      type(hocket_operator), intent(in) :: op
      type(hocket_call_options), intent(in), optional :: options
    end function
    integer(c_int) function hocket_all_reduce_by_async(comm, in, out, op, options, work) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_array), intent(in), target, optional :: in, out
      type(hocket_operator), intent(in) :: op
      type(hocket_call_options), intent(in), optional :: options
      type(c_ptr), intent(inout) :: work
    end function
    integer(c_int) function hocket_reduce_by(comm, in, out, op, root, options) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_array), intent(in), target, optional :: in, out
      type(hocket_operator), intent(in) :: op
      integer(c_int32_t), value :: root
      type(hocket_call_options), intent(in), optional :: options
    end function
    integer(c_int) function hocket_reduce_by_async(comm, in, out, op, root, options, work) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_array), intent(in), target, optional :: in, out
      type(hocket_operator), intent(in) :: op
      integer(c_int32_t), value :: root
      type(hocket_call_options), intent(in), optional :: options
      type(c_ptr), intent(inout) :: work
    end function
    integer(c_int) function hocket_reduce_scatter_by(comm, in, out, op, options) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_array), intent(in), target, optional :: in, out
      type(hocket_operator), intent(in) :: op
      type(hocket_call_options), intent(in), optional :: options
    end function
    integer(c_int) function hocket_reduce_scatter_by_async(comm, in, out, op, options, work) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_array), intent(in), target, optional :: in, out
      type(hocket_operator), intent(in) :: op
      type(hocket_call_options), intent(in), optional :: options
      type(c_ptr), intent(inout) :: work
    end function
    integer(c_int) function hocket_scan_by(comm, in, out, op, options) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_array), intent(in), target, optional :: in, out
      type(hocket_operator), intent(in) :: op
      type(hocket_call_options), intent(in), optional :: options
    end function
    integer(c_int) function hocket_scan_by_async(comm, in, out, op, options, work) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_array), intent(in), target, optional :: in, out
      type(hocket_operator), intent(in) :: op
      type(hocket_call_options), intent(in), optional :: options
      type(c_ptr), intent(inout) :: work
    end function
    integer(c_int) function hocket_exscan_by(comm, in, out, op, options) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_array), intent(in), target, optional :: in, out
      type(hocket_operator), intent(in) :: op
      type(hocket_call_options), intent(in), optional :: options
    end function
    integer(c_int) function hocket_exscan_by_async(comm, in, out, op, options, work) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_array), intent(in), target, optional :: in, out
      type(hocket_operator), intent(in) :: op
      type(hocket_call_options), intent(in), optional :: options
      type(c_ptr), intent(inout) :: work
    end function
    integer(c_int) function hocket_argmin(comm, in, index, values, ranks, indices, options) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_array), intent(in), target :: in
      type(hocket_array), intent(in), target, optional :: index
      type(hocket_array), intent(in), target :: values, ranks
      type(hocket_array), intent(in), target, optional :: indices
      type(hocket_call_options), intent(in), optional :: options
    end function
    integer(c_int) function hocket_argmin_async( &
      comm, in, index, values, ranks, indices, options, work) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_array), intent(in), target :: in
      type(hocket_array), intent(in), target, optional :: index
      type(hocket_array), intent(in), target :: values, ranks
      type(hocket_array), intent(in), target, optional :: indices
      type(hocket_call_options), intent(in), optional :: options
      type(c_ptr), intent(inout) :: work
    end function
    integer(c_int) function hocket_argmax(comm, in, index, values, ranks, indices, options) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_array), intent(in), target :: in
      type(hocket_array), intent(in), target, optional :: index
      type(hocket_array), intent(in), target :: values, ranks
      type(hocket_array), intent(in), target, optional :: indices
      type(hocket_call_options), intent(in), optional :: options
    end function
    integer(c_int) function hocket_argmax_async( &
      comm, in, index, values, ranks, indices, options, work) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_array), intent(in), target :: in
      type(hocket_array), intent(in), target, optional :: index
      type(hocket_array), intent(in), target :: values, ranks
      type(hocket_array), intent(in), target, optional :: indices
      type(hocket_call_options), intent(in), optional :: options
      type(c_ptr), intent(inout) :: work
    end function
    integer(c_int) function hocket_send(comm, in, destination, tag, options) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_array), intent(in), target, optional :: in
      integer(c_int32_t), value :: destination, tag
      type(hocket_call_options), intent(in), optional :: options
    end function
    integer(c_int) function hocket_send_async(comm, in, destination, tag, options, work) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_array), intent(in), target, optional :: in
      integer(c_int32_t), value :: destination, tag
      type(hocket_call_options), intent(in), optional :: options
      type(c_ptr), intent(inout) :: work
    end function
    integer(c_int) function hocket_recv(comm, out, source, tag, options, received) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_array), intent(in), target, optional :: out
      integer(c_int32_t), value :: source, tag
      type(hocket_call_options), intent(in), optional :: options
      type(hocket_received), intent(out), optional :: received
    end function
    integer(c_int) function hocket_recv_async(comm, out, source, tag, options, work) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_array), intent(in), target, optional :: out
      integer(c_int32_t), value :: source, tag
      type(hocket_call_options), intent(in), optional :: options
      type(c_ptr), intent(inout) :: work
    end function
    integer(c_int) function hocket_probe(comm, source, tag, options, received) bind(c)
      import
      type(c_ptr), value :: comm
      integer(c_int32_t), value :: source, tag
      type(hocket_call_options), intent(in), optional :: options
      type(hocket_received), intent(out) :: received
    end function
    integer(c_int) function hocket_probe_now(comm, source, tag, received, found) bind(c)
      import
      type(c_ptr), value :: comm
      integer(c_int32_t), value :: source, tag
      type(hocket_received), intent(inout) :: received
      integer(c_int), intent(out) :: found
    end function
    integer(c_int) function hocket_send_recv( &
      comm, in, destination, out, source, tag, options) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_array), intent(in), target, optional :: in
      integer(c_int32_t), value :: destination
      type(hocket_array), intent(in), target, optional :: out
      integer(c_int32_t), value :: source, tag
      type(hocket_call_options), intent(in), optional :: options
    end function
    integer(c_int) function hocket_exchange( &
      comm, outgoing, outgoing_count, incoming, incoming_count, tag, options) bind(c)
      import
      type(c_ptr), value :: comm, outgoing
      integer(c_size_t), value :: outgoing_count
      type(c_ptr), value :: incoming
      integer(c_size_t), value :: incoming_count
      integer(c_int32_t), value :: tag
      type(hocket_call_options), intent(in), optional :: options
    end function
    integer(c_int) function hocket_work_wait(work) bind(c)
      import
      type(c_ptr), value :: work
    end function
    integer(c_int) function hocket_work_wait_on(work, stream) bind(c)
      import
      type(c_ptr), value :: work, stream
    end function
    integer(c_int) function hocket_work_wait_for(work, timeout_ns, done) bind(c)
      import
      type(c_ptr), value :: work
      integer(c_int64_t), value :: timeout_ns
      integer(c_int), intent(out) :: done
    end function
    integer(c_int) function hocket_work_test(work, done) bind(c)
      import
      type(c_ptr), value :: work
      integer(c_int), intent(out) :: done
    end function
    integer(c_int) function hocket_work_received(work, received) bind(c)
      import
      type(c_ptr), value :: work
      type(hocket_received), intent(out) :: received
    end function
    subroutine hocket_work_free(work) bind(c)
      import
      type(c_ptr), intent(inout) :: work
    end subroutine
    integer(c_int) function hocket_symmetric_empty(comm, count, dtype, options, made) bind(c)
      import
      type(c_ptr), value :: comm
      integer(c_size_t), value :: count
      integer(c_int32_t), value :: dtype
      type(hocket_symmetric_options), intent(in), optional :: options
      type(c_ptr), intent(inout) :: made
    end function
    integer(c_int) function hocket_symmetric_local(symmetric, array) bind(c)
      import
      type(c_ptr), value :: symmetric
      type(hocket_array), intent(out) :: array
    end function
    integer(c_int) function hocket_symmetric_peer(symmetric, rank, array) bind(c)
      import
      type(c_ptr), value :: symmetric
      integer(c_int32_t), value :: rank
      type(hocket_array), intent(out) :: array
    end function
    subroutine hocket_symmetric_free(symmetric) bind(c)
      import
      type(c_ptr), intent(inout) :: symmetric
    end subroutine
    integer(c_int) function hocket_object_from_bytes(data, length, object) bind(c)
      import
      type(c_ptr), value :: data
      integer(c_size_t), value :: length
      type(c_ptr), intent(inout) :: object
    end function
    integer(c_int) function hocket_object_from_string(text, object) bind(c)
      import
      character(kind=c_char), intent(in) :: text(*)
      type(c_ptr), intent(inout) :: object
    end function
    integer(c_int) function hocket_object_decode(data, length, object) bind(c)
      import
      type(c_ptr), value :: data
      integer(c_size_t), value :: length
      type(c_ptr), intent(inout) :: object
    end function
    integer(c_int) function hocket_object_kind(object, kind) bind(c)
      import
      type(c_ptr), value :: object
      integer(c_int), intent(out) :: kind
    end function
    integer(c_int) function hocket_object_bytes(object, data, length) bind(c)
      import
      type(c_ptr), value :: object
      type(c_ptr), intent(out) :: data
      integer(c_size_t), intent(out) :: length
    end function
    integer(c_int) function hocket_object_encoding(object, data, length) bind(c)
      import
      type(c_ptr), value :: object
      type(c_ptr), intent(out) :: data
      integer(c_size_t), intent(out) :: length
    end function
    subroutine hocket_object_free(object) bind(c)
      import
      type(c_ptr), intent(inout) :: object
    end subroutine
    integer(c_int) function hocket_broadcast_object(comm, object, root, options, result) bind(c)
      import
      type(c_ptr), value :: comm, object
      integer(c_int32_t), value :: root
      type(hocket_call_options), intent(in), optional :: options
      type(c_ptr), intent(inout) :: result
    end function
    integer(c_int) function hocket_gather_object( &
      comm, object, root, options, results, length) bind(c)
      import
      type(c_ptr), value :: comm, object
      integer(c_int32_t), value :: root
      type(hocket_call_options), intent(in), optional :: options
      type(c_ptr), intent(out) :: results(*)
      integer(c_size_t), value :: length
    end function
    integer(c_int) function hocket_all_gather_object(comm, object, options, results, length) bind(c)
      import
      type(c_ptr), value :: comm, object
      type(hocket_call_options), intent(in), optional :: options
      type(c_ptr), intent(out) :: results(*)
      integer(c_size_t), value :: length
    end function
    integer(c_int) function hocket_scatter_object( &
      comm, objects, length, root, options, result) bind(c)
      import
      type(c_ptr), value :: comm
      type(c_ptr), intent(in) :: objects(*)
      integer(c_size_t), value :: length
      integer(c_int32_t), value :: root
      type(hocket_call_options), intent(in), optional :: options
      type(c_ptr), intent(inout) :: result
    end function
    integer(c_int) function hocket_prepared_call(prepared) bind(c)
      import
      type(c_ptr), value :: prepared
    end function
    integer(c_int) function hocket_prepared_start(prepared, work) bind(c)
      import
      type(c_ptr), value :: prepared
      type(c_ptr), intent(inout) :: work
    end function
    subroutine hocket_prepared_free(prepared) bind(c)
      import
      type(c_ptr), intent(inout) :: prepared
    end subroutine
    integer(c_int) function hocket_prepare_all_reduce(comm, in, out, op, options, prepared) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_array), intent(in), target, optional :: in, out
      integer(c_int32_t), value :: op
      type(hocket_call_options), intent(in), optional :: options
      type(c_ptr), intent(inout) :: prepared
    end function
    integer(c_int) function hocket_prepare_reduce( &
      comm, in, out, op, root, options, prepared) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_array), intent(in), target, optional :: in, out
      integer(c_int32_t), value :: op, root
      type(hocket_call_options), intent(in), optional :: options
      type(c_ptr), intent(inout) :: prepared
    end function
    integer(c_int) function hocket_prepare_scan(comm, in, out, op, options, prepared) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_array), intent(in), target, optional :: in, out
      integer(c_int32_t), value :: op
      type(hocket_call_options), intent(in), optional :: options
      type(c_ptr), intent(inout) :: prepared
    end function
    integer(c_int) function hocket_prepare_exscan(comm, in, out, op, options, prepared) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_array), intent(in), target, optional :: in, out
      integer(c_int32_t), value :: op
      type(hocket_call_options), intent(in), optional :: options
      type(c_ptr), intent(inout) :: prepared
    end function
    integer(c_int) function hocket_prepare_reduce_scatter( &
      comm, in, out, op, options, prepared) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_array), intent(in), target, optional :: in, out
      integer(c_int32_t), value :: op
      type(hocket_call_options), intent(in), optional :: options
      type(c_ptr), intent(inout) :: prepared
    end function
    integer(c_int) function hocket_prepare_broadcast(comm, in, out, root, options, prepared) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_array), intent(in), target, optional :: in, out
      integer(c_int32_t), value :: root
      type(hocket_call_options), intent(in), optional :: options
      type(c_ptr), intent(inout) :: prepared
    end function
    integer(c_int) function hocket_prepare_all_gather(comm, in, out, options, prepared) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_array), intent(in), target, optional :: in, out
      type(hocket_call_options), intent(in), optional :: options
      type(c_ptr), intent(inout) :: prepared
    end function
    integer(c_int) function hocket_prepare_gather(comm, in, out, root, options, prepared) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_array), intent(in), target, optional :: in, out
      integer(c_int32_t), value :: root
      type(hocket_call_options), intent(in), optional :: options
      type(c_ptr), intent(inout) :: prepared
    end function
    integer(c_int) function hocket_prepare_scatter(comm, in, out, root, options, prepared) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_array), intent(in), target, optional :: in, out
      integer(c_int32_t), value :: root
      type(hocket_call_options), intent(in), optional :: options
      type(c_ptr), intent(inout) :: prepared
    end function
    integer(c_int) function hocket_prepare_all_to_all(comm, in, out, options, prepared) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_array), intent(in), target, optional :: in, out
      type(hocket_call_options), intent(in), optional :: options
      type(c_ptr), intent(inout) :: prepared
    end function
    integer(c_int) function hocket_wait_some(works, count, timeout_ns, indices, found) bind(c)
      import
      type(c_ptr), intent(in) :: works(*)
      integer(c_size_t), value :: count
      integer(c_int64_t), value :: timeout_ns
      integer(c_size_t), intent(out) :: indices(*), found
    end function
    integer(c_int) function hocket_wait_any(works, count, timeout_ns, index, done) bind(c)
      import
      type(c_ptr), intent(in) :: works(*)
      integer(c_size_t), value :: count
      integer(c_int64_t), value :: timeout_ns
      integer(c_size_t), intent(inout) :: index
      integer(c_int), intent(out) :: done
    end function
    integer(c_int) function hocket_wait_all(works, count, timeout_ns, done) bind(c)
      import
      type(c_ptr), intent(in) :: works(*)
      integer(c_size_t), value :: count
      integer(c_int64_t), value :: timeout_ns
      integer(c_int), intent(out) :: done
    end function
    integer(c_int) function hocket_all_reduce_coalesced(comm, arrays, count, op, options) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_array), intent(in), target :: arrays(*)
      integer(c_size_t), value :: count
      integer(c_int32_t), value :: op
      type(hocket_call_options), intent(in), optional :: options
    end function
    integer(c_int) function hocket_broadcast_coalesced(comm, arrays, count, root, options) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_array), intent(in), target :: arrays(*)
      integer(c_size_t), value :: count
      integer(c_int32_t), value :: root
      type(hocket_call_options), intent(in), optional :: options
    end function
    integer(c_int) function hocket_all_gather_coalesced(comm, in, out, count, options) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_array), intent(in), target :: in(*), out(*)
      integer(c_size_t), value :: count
      type(hocket_call_options), intent(in), optional :: options
    end function
    integer(c_int) function hocket_reduce_scatter_coalesced( &
      comm, in, out, count, op, options) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_array), intent(in), target :: in(*), out(*)
      integer(c_size_t), value :: count
      integer(c_int32_t), value :: op
      type(hocket_call_options), intent(in), optional :: options
    end function
    integer(c_int) function hocket_reproducible_sum(comm, shards, out, op, options) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_array), intent(in), target :: shards, out
      integer(c_int32_t), value :: op
      type(hocket_call_options), intent(in), optional :: options
    end function
    integer(c_int) function hocket_compressed_all_reduce(comm, inout, op, options) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_array), intent(in), target :: inout
      integer(c_int32_t), value :: op
      type(hocket_call_options), intent(in), optional :: options
    end function
    integer(c_int) function hocket_hierarchical_all_reduce( &
      comm, inout, op, compressed, options) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_array), intent(in), target :: inout
      integer(c_int32_t), value :: op, compressed
      type(hocket_call_options), intent(in), optional :: options
    end function
    integer(c_int) function hocket_send_object(comm, object, destination, tag, options) bind(c)
      import
      type(c_ptr), value :: comm, object
      integer(c_int32_t), value :: destination, tag
      type(hocket_call_options), intent(in), optional :: options
    end function
    integer(c_int) function hocket_recv_object(comm, source, tag, options, result, from) bind(c)
      import
      type(c_ptr), value :: comm
      integer(c_int32_t), value :: source, tag
      type(hocket_call_options), intent(in), optional :: options
      type(c_ptr), intent(inout) :: result
      integer(c_int32_t), intent(inout), optional :: from
    end function
    integer(c_int) function hocket_send_strided(comm, in, destination, tag, options) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_strided), intent(in), target :: in
      integer(c_int32_t), value :: destination, tag
      type(hocket_call_options), intent(in), optional :: options
    end function
    integer(c_int) function hocket_recv_strided(comm, out, source, tag, options, received) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_strided), intent(in), target :: out
      integer(c_int32_t), value :: source, tag
      type(hocket_call_options), intent(in), optional :: options
      type(hocket_received), intent(out), optional :: received
    end function
    integer(c_int) function hocket_send_recv_strided( &
      comm, in, destination, out, source, tag, options, received) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_strided), intent(in), target :: in
      integer(c_int32_t), value :: destination
      type(hocket_strided), intent(in), target :: out
      integer(c_int32_t), value :: source, tag
      type(hocket_call_options), intent(in), optional :: options
      type(hocket_received), intent(out), optional :: received
    end function
    integer(c_int) function hocket_grid_make(comm, shape, periodic, axes, grid) bind(c)
      import
      type(c_ptr), value :: comm
      integer(c_int32_t), intent(in) :: shape(*)
      integer(c_int32_t), intent(in), optional :: periodic(*)
      integer(c_size_t), value :: axes
      type(c_ptr), intent(inout) :: grid
    end function
    integer(c_int) function hocket_grid_shape(grid, shape, length) bind(c)
      import
      type(c_ptr), value :: grid
      integer(c_int32_t), intent(out) :: shape(*)
      integer(c_size_t), value :: length
    end function
    integer(c_int) function hocket_grid_coordinates(grid, rank, coordinates, length) bind(c)
      import
      type(c_ptr), value :: grid
      integer(c_int32_t), value :: rank
      integer(c_int32_t), intent(out) :: coordinates(*)
      integer(c_size_t), value :: length
    end function
    integer(c_int) function hocket_grid_rank(grid, coordinates, length, rank) bind(c)
      import
      type(c_ptr), value :: grid
      integer(c_int32_t), intent(in) :: coordinates(*)
      integer(c_size_t), value :: length
      integer(c_int32_t), intent(out) :: rank
    end function
    integer(c_int) function hocket_grid_shift(grid, axis, distance, source, destination) bind(c)
      import
      type(c_ptr), value :: grid
      integer(c_int32_t), value :: axis, distance
      integer(c_int32_t), intent(out) :: source, destination
    end function
    subroutine hocket_grid_free(grid) bind(c)
      import
      type(c_ptr), intent(inout) :: grid
    end subroutine
    integer(c_int) function hocket_neighbour_exchange(grid, x, halo, axes, tag, options) bind(c)
      import
      type(c_ptr), value :: grid
      type(hocket_strided), intent(in), target :: x
      type(hocket_halo), intent(in) :: halo(*)
      integer(c_size_t), value :: axes
      integer(c_int32_t), value :: tag
      type(hocket_call_options), intent(in), optional :: options
    end function
    integer(c_int) function hocket_work_on_done(work, f, context) bind(c)
      import
      type(c_ptr), value :: work
      type(c_funptr), value :: f
      type(c_ptr), value :: context
    end function
    integer(c_int) function hocket_comm_dump(comm, directory) bind(c)
      import
      type(c_ptr), value :: comm
      character(kind=c_char), intent(in), optional :: directory(*)
    end function
    integer(c_int) function hocket_prepare_all_reduce_by( &
      comm, in, out, op, options, prepared) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_array), intent(in), target, optional :: in, out
      type(hocket_operator), intent(in) :: op
      type(hocket_call_options), intent(in), optional :: options
      type(c_ptr), intent(inout) :: prepared
    end function
    integer(c_int) function hocket_prepare_reduce_by( &
      comm, in, out, op, root, options, prepared) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_array), intent(in), target, optional :: in, out
      type(hocket_operator), intent(in) :: op
      integer(c_int32_t), value :: root
      type(hocket_call_options), intent(in), optional :: options
      type(c_ptr), intent(inout) :: prepared
    end function
    integer(c_int) function hocket_prepare_reduce_scatter_by( &
      comm, in, out, op, options, prepared) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_array), intent(in), target, optional :: in, out
      type(hocket_operator), intent(in) :: op
      type(hocket_call_options), intent(in), optional :: options
      type(c_ptr), intent(inout) :: prepared
    end function
    integer(c_int) function hocket_prepare_scan_by(comm, in, out, op, options, prepared) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_array), intent(in), target, optional :: in, out
      type(hocket_operator), intent(in) :: op
      type(hocket_call_options), intent(in), optional :: options
      type(c_ptr), intent(inout) :: prepared
    end function
    integer(c_int) function hocket_prepare_exscan_by(comm, in, out, op, options, prepared) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_array), intent(in), target, optional :: in, out
      type(hocket_operator), intent(in) :: op
      type(hocket_call_options), intent(in), optional :: options
      type(c_ptr), intent(inout) :: prepared
    end function
    integer(c_int) function hocket_prepare_argmin( &
      comm, in, index, values, ranks, indices, options, prepared) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_array), intent(in), target :: in
      type(hocket_array), intent(in), target, optional :: index
      type(hocket_array), intent(in), target :: values, ranks
      type(hocket_array), intent(in), target, optional :: indices
      type(hocket_call_options), intent(in), optional :: options
      type(c_ptr), intent(inout) :: prepared
    end function
    integer(c_int) function hocket_prepare_argmax( &
      comm, in, index, values, ranks, indices, options, prepared) bind(c)
      import
      type(c_ptr), value :: comm
      type(hocket_array), intent(in), target :: in
      type(hocket_array), intent(in), target, optional :: index
      type(hocket_array), intent(in), target :: values, ranks
      type(hocket_array), intent(in), target, optional :: indices
      type(hocket_call_options), intent(in), optional :: options
      type(c_ptr), intent(inout) :: prepared
    end function
  end interface

  private :: view_int8, view_int16, view_int32, view_int64, view_real32, view_real64, &
    view_complex64, view_complex128, view_logical, view_character, view, text

contains

  ! Returns the message of the last error of this thread. Empty if there was none.
  function hocket_message() result(message)
    character(len=:), allocatable :: message
    message = text(hocket_error_message())
  end function

  ! Converts a string of C to a string of Fortran.
  function text(from) result(copy)
    type(c_ptr), intent(in) :: from
    character(len=:), allocatable :: copy
    character(kind=c_char), pointer :: characters(:)
    integer :: length
    copy = ""
    if (.not. c_associated(from)) return
    call c_f_pointer(from, characters, [huge(0)])
    length = 0
    do while (characters(length + 1) /= c_null_char)
      length = length + 1
      copy = copy // characters(length)
    end do
  end function

  function view(data, count, dtype, contiguous)
    type(c_ptr), intent(in) :: data
    integer(c_size_t), intent(in) :: count
    integer(c_int32_t), intent(in) :: dtype
    logical, intent(in) :: contiguous
    type(hocket_array) :: view
    view = hocket_array(data, count, dtype, HOCKET_MEMORY_HOST)
    if (.not. contiguous) view%memory = NOT_CONTIGUOUS
    if (.not. c_associated(data)) view%memory = NOT_ALLOCATED
  end function
  function view_int8(x)
    integer(c_int8_t), pointer, intent(in) :: x(..)
    type(hocket_array) :: view_int8
    view_int8 = view(c_loc(x), size(x, kind=c_size_t), HOCKET_INT8, is_contiguous(x))
  end function
  function view_int16(x)
    integer(c_int16_t), pointer, intent(in) :: x(..)
    type(hocket_array) :: view_int16
    view_int16 = view(c_loc(x), size(x, kind=c_size_t), HOCKET_INT16, is_contiguous(x))
  end function
  function view_int32(x)
    integer(c_int32_t), pointer, intent(in) :: x(..)
    type(hocket_array) :: view_int32
    view_int32 = view(c_loc(x), size(x, kind=c_size_t), HOCKET_INT32, is_contiguous(x))
  end function
  function view_int64(x)
    integer(c_int64_t), pointer, intent(in) :: x(..)
    type(hocket_array) :: view_int64
    view_int64 = view(c_loc(x), size(x, kind=c_size_t), HOCKET_INT64, is_contiguous(x))
  end function
  function view_real32(x)
    real(c_float), pointer, intent(in) :: x(..)
    type(hocket_array) :: view_real32
    view_real32 = view(c_loc(x), size(x, kind=c_size_t), HOCKET_FLOAT32, is_contiguous(x))
  end function
  function view_real64(x)
    real(c_double), pointer, intent(in) :: x(..)
    type(hocket_array) :: view_real64
    view_real64 = view(c_loc(x), size(x, kind=c_size_t), HOCKET_FLOAT64, is_contiguous(x))
  end function
  function view_complex64(x)
    complex(c_float_complex), pointer, intent(in) :: x(..)
    type(hocket_array) :: view_complex64
    view_complex64 = view(c_loc(x), size(x, kind=c_size_t), HOCKET_COMPLEX64, is_contiguous(x))
  end function
  function view_complex128(x)
    complex(c_double_complex), pointer, intent(in) :: x(..)
    type(hocket_array) :: view_complex128
    view_complex128 = view(c_loc(x), size(x, kind=c_size_t), HOCKET_COMPLEX128, is_contiguous(x))
  end function
  function view_logical(x)
    logical(c_bool), pointer, intent(in) :: x(..)
    type(hocket_array) :: view_logical
    view_logical = view(c_loc(x), size(x, kind=c_size_t), HOCKET_BOOL, is_contiguous(x))
  end function
  ! A view of any memory as bytes, for messages of derived types and of kinds that C has no type for.
  function hocket_bytes(data, bytes)
    type(c_ptr), intent(in) :: data
    integer(c_size_t), intent(in) :: bytes
    type(hocket_array) :: hocket_bytes
    hocket_bytes = view(data, bytes, HOCKET_UINT8, .true.)
  end function
  ! Bytes: as many as there are characters.
  function view_character(x)
    character(kind=c_char, len=*), pointer, intent(in) :: x(..)
    type(hocket_array) :: view_character
    view_character = view(c_loc(x), size(x, kind=c_size_t) * len(x), HOCKET_UINT8, is_contiguous(x))
  end function
end module
