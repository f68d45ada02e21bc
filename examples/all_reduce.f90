! The mean of an array over all ranks.
program all_reduce
  use, intrinsic :: iso_c_binding
  use hocket
  implicit none

  type(c_ptr) :: world = c_null_ptr
  integer(c_int) :: rank
  real(c_double), target :: x(4)

  if (hocket_init(world=world) /= HOCKET_OK) error stop hocket_message()
  if (hocket_comm_rank(world, rank) /= HOCKET_OK) error stop hocket_message()
  x = rank
  if (hocket_all_reduce(world, out=hocket_view(x), op=HOCKET_AVG) /= HOCKET_OK) then
    error stop hocket_message()
  end if
  if (rank == 0) print "(a, 4f6.2)", "mean over all ranks:", x
  call hocket_comm_free(world)
end program
