! hocket's module for Fortran between the ranks of a job.
program test_fortran
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: error_unit
  use hocket
  implicit none

  type(c_ptr) :: world = c_null_ptr, half = c_null_ptr, work = c_null_ptr, made = c_null_ptr
  type(c_ptr) :: object = c_null_ptr, got = c_null_ptr, bytes
  integer(c_int) :: rank, ranks, done
  integer(c_int32_t), parameter :: next_tag = 4
  integer :: i
  real(c_double), target :: x(3), y(3), weight = 0.5, square(3, 3), one
  real(c_double), allocatable, target :: absent(:)
  real(c_double), pointer :: nothing(:)
  logical(c_bool), target :: flags(2), flag
  character(len=4), target :: word
  integer(c_int8_t), target :: small(2)
  integer(c_int16_t), target :: medium
  real(c_double) :: total
  integer(c_int32_t), target :: who(3)
  type(hocket_operator) :: op
  real(c_double), allocatable, target :: all(:, :)
  complex(c_float_complex), target :: z(2)
  integer(c_int64_t), target :: n(1)
  integer(c_int32_t), pointer :: shared(:)
  character(kind=c_char), pointer :: characters(:)
  character(kind=c_char), target :: greeting(5) = ["h", "e", "l", "l", "o"]
  integer(c_size_t) :: length
  type(hocket_array) :: mine, wrong
  type(hocket_call_options) :: options
  type(hocket_init_options) :: joining
  type(hocket_rebuild_options) :: rebuilding
  type(hocket_symmetric_options) :: sharing
  type(hocket_strided) :: line, other_line
  type(hocket_halo) :: halo(2)
  type(hocket_received) :: told
  type(c_ptr) :: works(2), grid = c_null_ptr
  integer(c_size_t) :: found, places(2)
  integer(c_int32_t) :: from, to, shape2(2)
  real(c_double), target :: field(3, 4)
  type :: particle
    real(c_double) :: at(3)
    integer(c_int) :: kind
  end type
  type(particle), target :: one_particle, other_particle

  call check(options%size == c_sizeof(options), "size of hocket_call_options")
  call check(joining%size == c_sizeof(joining), "size of hocket_init_options")
  call check(op%size == c_sizeof(op), "size of hocket_operator")
  call check(rebuilding%size == c_sizeof(rebuilding), "size of hocket_rebuild_options")
  call check(sharing%size == c_sizeof(sharing), "size of hocket_symmetric_options")

  call ok(hocket_init(world=world))
  call ok(hocket_comm_rank(world, rank))
  call ok(hocket_comm_size(world, ranks))

  x = [(rank * 10 + i, i = 1, 3)]
  call ok(hocket_all_reduce(world, hocket_view(x), hocket_view(y), HOCKET_SUM))
  call check(all_equal(y, [(5.0_c_double * ranks * (ranks - 1) + ranks * i, i = 1, 3)]), "sum")
  call ok(hocket_all_reduce(world, out=hocket_view(x), op=HOCKET_MAX))
  call check(all_equal(x, [((ranks - 1) * 10.0_c_double + i, i = 1, 3)]), "max, in place")

  x = [(rank * 10 + i, i = 1, 3)]
  call ok(hocket_exscan(world, hocket_view(x), hocket_view(y), HOCKET_MIN))
  if (rank > 0) call check(all_equal(y, [1.0_c_double, 2.0_c_double, 3.0_c_double]), "exscan")

  ! Columns are ranks: Fortran's order.
  allocate (all(3, ranks))
  x = [(rank * 10 + i, i = 1, 3)]
  options%deadline_ns = 30 * 1000000000_c_int64_t
  call ok(hocket_all_gather(world, hocket_view(x), hocket_view(all), options))
  do i = 1, ranks
    call check(all_equal(all(:, i), [10.0_c_double * (i - 1) + 1, 10.0_c_double * (i - 1) + 2, &
      10.0_c_double * (i - 1) + 3]), "gathered")
  end do

  z = cmplx(rank, [1, 2], kind=c_float_complex)
  call ok(hocket_all_reduce_async(world, out=hocket_view(z), op=HOCKET_SUM, work=work))
  call ok(hocket_work_wait(work))
  call ok(hocket_work_test(work, done))
  call hocket_work_free(work)
  call check(done == 1 .and. .not. c_associated(work), "work")
  call check(nint(real(z(2))) == ranks * (ranks - 1) / 2 .and. nint(aimag(z(2))) == 2 * ranks, &
    "complex sum")

  op%combine = c_funloc(weighted)
  op%context = c_loc(weight)
  x = rank + 1
  call ok(hocket_all_reduce_by(world, in=hocket_view(x), out=hocket_view(y), op=op))
  total = 1
  do i = 2, ranks
    total = total * weight + i
  end do
  call check(maxval(abs(y - total)) < 1e-12_c_double, "an operator")
  call ok(hocket_scan_by_async(world, out=hocket_view(x), op=op, work=work))
  call ok(hocket_work_wait(work))
  call hocket_work_free(work)
  call check(rank /= ranks - 1 .or. maxval(abs(x - total)) < 1e-12_c_double, "a scan by an operator")
  x = -rank
  call ok(hocket_argmin(world, in=hocket_view(x), values=hocket_view(y), ranks=hocket_view(who)))
  call check(minval(who) == ranks - 1 .and. maxval(nint(y)) == 1 - ranks, "argmin")
  x = [(rank * 10 + i, i = 1, 3)]

  ! A ring.
  call ok(hocket_send_recv(world, hocket_view(x), modulo(rank + 1, ranks), hocket_view(y), &
    modulo(rank - 1, ranks), next_tag))
  call check(nint(y(1)) == modulo(rank - 1, ranks) * 10 + 1, "ring")

  ! Prepared, and several works.
  x = rank
  call ok(hocket_prepare_all_reduce(world, out=hocket_view(x), op=HOCKET_SUM, prepared=made))
  call ok(hocket_prepared_call(made))
  call check(nint(x(3)) == ranks * (ranks - 1) / 2, "prepared")
  x = 1
  call ok(hocket_prepared_start(made, work))
  call ok(hocket_work_wait(work))
  call hocket_work_free(work)
  call hocket_prepared_free(made)
  call check(nint(x(3)) == ranks, "prepared and started")
  works = c_null_ptr
  x = rank
  call ok(hocket_recv_async(world, hocket_view(y(1:1)), modulo(rank - 1, ranks), 30, work=works(1)))
  call ok(hocket_recv_async(world, hocket_view(y(2:2)), modulo(rank - 1, ranks), 31, work=works(2)))
  call ok(hocket_barrier(world))
  call ok(hocket_wait_some(works, 2_c_size_t, 0_c_int64_t, places, found))
  call check(found == 0, "nothing has come")
  call ok(hocket_barrier(world))
  call ok(hocket_send(world, hocket_view(x(1:1)), modulo(rank + 1, ranks), 31))
  call ok(hocket_wait_any(works, 2_c_size_t, HOCKET_FOREVER, found, done))
  call check(done == 1 .and. found == 1, "the second has come")
  call ok(hocket_barrier(world))
  call ok(hocket_send(world, hocket_view(x(1:1)), modulo(rank + 1, ranks), 30))
  call ok(hocket_wait_all(works, 2_c_size_t, HOCKET_FOREVER, done))
  call check(done == 1 .and. nint(sum(y(1:2))) == 2 * modulo(rank - 1, ranks), "both have come")
  call hocket_work_free(works(1))
  call hocket_work_free(works(2))

  ! A row of a matrix to a column of the next rank's, and a derived type.
  field = rank
  line = hocket_strided(c_loc(field(2, 1)), HOCKET_FLOAT64, 1)
  line%shape(1) = 3
  line%strides(1) = 3
  other_line = hocket_strided(c_loc(field(1, 4)), HOCKET_FLOAT64, 1)
  other_line%shape(1) = 3
  other_line%strides(1) = 1
  call ok(hocket_send_recv_strided(world, line, modulo(rank + 1, ranks), other_line, &
    modulo(rank - 1, ranks), 0, received=told))
  call check(told%count == 3 .and. all_equal(field(:, 4), &
    [(real(modulo(rank - 1, ranks), c_double), i = 1, 3)]), "a row becomes a column")
  one_particle = particle([1.0_c_double * rank, 2.0_c_double, 3.0_c_double], rank)
  call ok(hocket_send_recv(world, &
    hocket_bytes(c_loc(one_particle), int(storage_size(one_particle) / 8, c_size_t)), &
    modulo(rank + 1, ranks), &
    hocket_bytes(c_loc(other_particle), int(storage_size(other_particle) / 8, c_size_t)), &
    modulo(rank - 1, ranks), 0))
  call check(other_particle%kind == modulo(rank - 1, ranks), "a derived type")

  ! A ring of columns: axes are listed from the last to the first.
  call ok(hocket_grid_make(world, [-1_c_int32_t], [1_c_int32_t], 1_c_size_t, grid))
  call ok(hocket_grid_shift(grid, 0, 1, from, to))
  call check(from == modulo(rank - 1, ranks) .and. to == modulo(rank + 1, ranks), "shift")
  call ok(hocket_grid_shape(grid, shape2, 2_c_size_t))
  call check(shape2(1) == ranks, "shape")
  field = rank
  line = hocket_strided(c_loc(field), HOCKET_FLOAT64, 2)
  line%shape(1:2) = [4, 3]
  line%strides(1:2) = [3, 1]
  halo(1) = hocket_halo(1, 1)
  call ok(hocket_neighbour_exchange(grid, line, halo, 1_c_size_t, 0))
  call check(nint(field(3, 1)) == from .and. nint(field(1, 4)) == to, "borders")
  call hocket_grid_free(grid)

  call ok(hocket_split(world, modulo(rank, 2), 0, group=half))
  n = rank
  call ok(hocket_broadcast(half, out=hocket_view(n), root=0))
  call check(n(1) == modulo(rank, 2), "group")
  call hocket_comm_free(half)

  call ok(hocket_symmetric_empty(world, 3_c_size_t, HOCKET_INT32, sharing, made))
  call ok(hocket_symmetric_peer(made, modulo(rank + 1, ranks), mine))
  call c_f_pointer(mine%data, shared, [3])
  shared = rank
  call ok(hocket_barrier(world))
  call ok(hocket_symmetric_local(made, mine))
  call c_f_pointer(mine%data, shared, [3])
  call check(shared(3) == modulo(rank - 1, ranks), "symmetric")
  call hocket_symmetric_free(made)

  if (rank == 0) call ok(hocket_object_from_bytes(c_loc(greeting), 5_c_size_t, object))
  call ok(hocket_broadcast_object(world, object, 0, result=got))
  call ok(hocket_object_bytes(got, bytes, length))
  call c_f_pointer(bytes, characters, [length])
  call check(length == 5 .and. characters(5) == "o", "object")
  call hocket_object_free(got)
  call hocket_object_free(object)

  wrong = hocket_view(x)
  wrong%dtype = 99
  call check(hocket_all_reduce(world, out=wrong, op=HOCKET_SUM) == HOCKET_INVALID_ARGUMENT, "refused")
  call check(index(hocket_message(), "dtype is 99") > 0, hocket_message())
  call check(hocket_barrier(half) == HOCKET_INVALID_ARGUMENT, "null")

  ! An array that no call could use is refused, also of calls that go on; and the rest goes on.
  nothing => null()
  square = rank
  call refused(hocket_view(square(2, :)), "follow each other")
  call refused(hocket_view(square(::2, 1)), "follow each other")
  call refused(hocket_view(absent), "not allocated")
  call refused(hocket_view(nothing), "not allocated")
  call strided(square(2, :))
  call through(square(:, 2))
  call check(all_equal(square(:, 2), [(ranks * (ranks - 1) / 2.0_c_double, i = 1, 3)]), "a column by assumed shape")

  ! Single variables, logicals, characters, small integers.
  one = rank
  call ok(hocket_all_reduce(world, out=hocket_view(one), op=HOCKET_SUM))
  call check(nint(one) == ranks * (ranks - 1) / 2, "a scalar")
  call ok(hocket_all_reduce(world, out=hocket_view(square(2, 3)), op=HOCKET_SUM))
  call check(nint(square(2, 3)) == ranks * (ranks - 1) / 2, "an element")
  flags = [logical(c_bool) :: rank == 0, .false.]
  call ok(hocket_all_reduce(world, out=hocket_view(flags), op=HOCKET_SUM))
  call check(logical(flags(1) .and. .not. flags(2)), "logicals")
  flag = rank == 0
  call ok(hocket_all_reduce(world, out=hocket_view(flag), op=HOCKET_MIN))
  call check((ranks == 1) .eqv. logical(flag), "a logical")
  word = merge("root", "none", rank == 0)
  call ok(hocket_broadcast(world, out=hocket_view(word), root=0))
  call check(word == "root", "characters")
  small = int(rank, c_int8_t)
  call ok(hocket_all_reduce(world, out=hocket_view(small), op=HOCKET_MAX))
  medium = int(-rank, c_int16_t)
  call ok(hocket_all_reduce(world, out=hocket_view(medium), op=HOCKET_MIN))
  call check(small(2) == ranks - 1 .and. medium == 1 - ranks, "small integers")

  call ok(hocket_barrier(world))
  call ok(hocket_comm_close(world))
  call check(hocket_barrier(world) == HOCKET_INVALID_ARGUMENT, "closed")
  call hocket_comm_free(world)

contains

  ! Neither commutative nor associative.
  function weighted(left, right, count, context) bind(c)
    type(c_ptr), value :: left, right, context
    integer(c_size_t), value :: count
    integer(c_int) :: weighted
    real(c_double), pointer :: a(:), b(:), w
    call c_f_pointer(left, a, [count])
    call c_f_pointer(right, b, [count])
    call c_f_pointer(context, w)
    a = a * w + b
    weighted = 0
  end function

  ! By all ranks, so that none waits for another.
  subroutine refused(given, why)
    type(hocket_array), intent(in), target :: given
    character(len=*), intent(in) :: why
    type(c_ptr) :: started = c_null_ptr
    call check(hocket_all_reduce(world, out=given, op=HOCKET_SUM) == HOCKET_INVALID_ARGUMENT, why)
    call check(index(hocket_message(), why) > 0, hocket_message())
    call check(hocket_all_reduce_async(world, out=given, op=HOCKET_SUM, work=started) == &
      HOCKET_INVALID_ARGUMENT, why)
    call check(index(hocket_message(), why) > 0, hocket_message())
    call check(.not. c_associated(started), "no work")
  end subroutine

  ! Assumed shape: what it is of is seen when the program runs.
  subroutine strided(part)
    real(c_double), intent(inout), target :: part(:)
    call refused(hocket_view(part), "follow each other")
  end subroutine

  subroutine through(part)
    real(c_double), intent(inout), target :: part(:)
    type(c_ptr) :: started = c_null_ptr
    call ok(hocket_all_reduce_async(world, out=hocket_view(part), op=HOCKET_SUM, work=started))
    call ok(hocket_work_wait(started))
    call hocket_work_free(started)
  end subroutine

  subroutine ok(code)
    integer(c_int), intent(in) :: code
    call check(code == HOCKET_OK, hocket_message())
  end subroutine

  subroutine check(is_so, what)
    logical, intent(in) :: is_so
    character(len=*), intent(in) :: what
    if (is_so) return
    write (error_unit, "(a, i0, 2a)") "rank ", rank, ": not so: ", what
    stop 1
  end subroutine

  logical function all_equal(a, b)
    real(c_double), intent(in) :: a(:), b(:)
    all_equal = maxval(abs(a - b)) < 1e-12_c_double
  end function
end program
