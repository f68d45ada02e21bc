// Must not compile. Each line that ends in `//!` gives an error with the words after it. All lines
// are in one compilation, so each line has its own type: of equal errors only the first is
// reported.
#include <hocket/hocket.h>

#include <array>
#include <complex>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

using hocket::Communicator;
using hocket::operator_of;
using hocket::ReduceOp;
using std::array;

namespace {

struct Particle {
  float x, y, z;
};
// A view that does not say so.
template <int kLine>
struct Silent {
  float* data() const;
  std::size_t size() const;
  float* begin() const;
  float* end() const;
};
struct Scaled {
  double by;
  double operator()(double a, double b) const { return by * (a + b); }
};
std::vector<double> x, y;
hocket::Work kept;
hocket::Prepared made{nullptr};

}  // namespace

// clang-format off: each line is a case of its own.

// --- Temporaries that own their elements, of calls that go on ----------------------------------

void one_array(Communicator& c) {
  kept = c.all_reduce_async(array<float, __LINE__>{});  //! this array is a temporary
  made = c.prepare_all_reduce(array<float, __LINE__>{});  //! this array is a temporary
  kept = c.reduce_async(array<float, __LINE__>{});  //! this array is a temporary
  made = c.prepare_reduce(array<float, __LINE__>{});  //! this array is a temporary
  kept = c.scan_async(array<float, __LINE__>{});  //! this array is a temporary
  made = c.prepare_scan(array<float, __LINE__>{});  //! this array is a temporary
  kept = c.exscan_async(array<float, __LINE__>{});  //! this array is a temporary
  made = c.prepare_exscan(array<float, __LINE__>{});  //! this array is a temporary
  kept = c.reduce_scatter_async(array<float, __LINE__>{});  //! this array is a temporary
  made = c.prepare_reduce_scatter(array<float, __LINE__>{});  //! this array is a temporary
  kept = c.broadcast_async(array<float, __LINE__>{});  //! this array is a temporary
  made = c.prepare_broadcast(array<float, __LINE__>{});  //! this array is a temporary
  kept = c.all_gather_async(array<float, __LINE__>{});  //! this array is a temporary
  made = c.prepare_all_gather(array<float, __LINE__>{});  //! this array is a temporary
  kept = c.gather_async(array<float, __LINE__>{});  //! this array is a temporary
  made = c.prepare_gather(array<float, __LINE__>{});  //! this array is a temporary
  kept = c.scatter_async(array<float, __LINE__>{});  //! this array is a temporary
  made = c.prepare_scatter(array<float, __LINE__>{});  //! this array is a temporary
  kept = c.all_to_all_async(array<float, __LINE__>{});  //! this array is a temporary
  made = c.prepare_all_to_all(array<float, __LINE__>{});  //! this array is a temporary
}
void inputs(Communicator& c) {
  kept = c.all_reduce_async(array<double, __LINE__>{}, y);  //! this array is a temporary
  made = c.prepare_all_reduce(array<double, __LINE__>{}, y);  //! this array is a temporary
  kept = c.reduce_async(array<double, __LINE__>{}, y);  //! this array is a temporary
  made = c.prepare_reduce(array<double, __LINE__>{}, y);  //! this array is a temporary
  kept = c.scan_async(array<double, __LINE__>{}, y);  //! this array is a temporary
  made = c.prepare_scan(array<double, __LINE__>{}, y);  //! this array is a temporary
  kept = c.exscan_async(array<double, __LINE__>{}, y);  //! this array is a temporary
  made = c.prepare_exscan(array<double, __LINE__>{}, y);  //! this array is a temporary
  kept = c.reduce_scatter_async(array<double, __LINE__>{}, y);  //! this array is a temporary
  made = c.prepare_reduce_scatter(array<double, __LINE__>{}, y);  //! this array is a temporary
  kept = c.broadcast_async(array<double, __LINE__>{}, y);  //! this array is a temporary
  made = c.prepare_broadcast(array<double, __LINE__>{}, y);  //! this array is a temporary
  kept = c.all_gather_async(array<double, __LINE__>{}, y);  //! this array is a temporary
  made = c.prepare_all_gather(array<double, __LINE__>{}, y);  //! this array is a temporary
  kept = c.gather_async(array<double, __LINE__>{}, y);  //! this array is a temporary
  made = c.prepare_gather(array<double, __LINE__>{}, y);  //! this array is a temporary
  kept = c.scatter_async(array<double, __LINE__>{}, y);  //! this array is a temporary
  made = c.prepare_scatter(array<double, __LINE__>{}, y);  //! this array is a temporary
  kept = c.all_to_all_async(array<double, __LINE__>{}, y);  //! this array is a temporary
  made = c.prepare_all_to_all(array<double, __LINE__>{}, y);  //! this array is a temporary
}
void outputs(Communicator& c) {
  kept = c.all_reduce_async(x, array<double, __LINE__>{});  //! this array is a temporary
  made = c.prepare_all_reduce(x, array<double, __LINE__>{});  //! this array is a temporary
  kept = c.reduce_async(x, array<double, __LINE__>{});  //! this array is a temporary
  made = c.prepare_reduce(x, array<double, __LINE__>{});  //! this array is a temporary
  kept = c.scan_async(x, array<double, __LINE__>{});  //! this array is a temporary
  made = c.prepare_scan(x, array<double, __LINE__>{});  //! this array is a temporary
  kept = c.exscan_async(x, array<double, __LINE__>{});  //! this array is a temporary
  made = c.prepare_exscan(x, array<double, __LINE__>{});  //! this array is a temporary
  kept = c.reduce_scatter_async(x, array<double, __LINE__>{});  //! this array is a temporary
  made = c.prepare_reduce_scatter(x, array<double, __LINE__>{});  //! this array is a temporary
  kept = c.broadcast_async(x, array<double, __LINE__>{});  //! this array is a temporary
  made = c.prepare_broadcast(x, array<double, __LINE__>{});  //! this array is a temporary
  kept = c.all_gather_async(x, array<double, __LINE__>{});  //! this array is a temporary
  made = c.prepare_all_gather(x, array<double, __LINE__>{});  //! this array is a temporary
  kept = c.gather_async(x, array<double, __LINE__>{});  //! this array is a temporary
  made = c.prepare_gather(x, array<double, __LINE__>{});  //! this array is a temporary
  kept = c.scatter_async(x, array<double, __LINE__>{});  //! this array is a temporary
  made = c.prepare_scatter(x, array<double, __LINE__>{});  //! this array is a temporary
  kept = c.all_to_all_async(x, array<double, __LINE__>{});  //! this array is a temporary
  made = c.prepare_all_to_all(x, array<double, __LINE__>{});  //! this array is a temporary
}
void parts(Communicator& c) {
  kept = c.all_gather_v_async(array<int, __LINE__>{}, y);              //! this array is a temporary
  kept = c.all_gather_v_async(x, array<int, __LINE__>{});              //! this array is a temporary
  kept = c.gather_v_async(array<int, __LINE__>{}, y);                  //! this array is a temporary
  kept = c.gather_v_async(x, array<int, __LINE__>{});                  //! this array is a temporary
  kept = c.scatter_v_async(array<int, __LINE__>{}, {}, y);             //! this array is a temporary
  kept = c.scatter_v_async(x, {}, array<int, __LINE__>{});             //! this array is a temporary
  kept = c.all_to_all_v_async(array<int, __LINE__>{}, {}, y);          //! this array is a temporary
  kept = c.all_to_all_v_async(x, {}, array<int, __LINE__>{});          //! this array is a temporary
  kept = c.reduce_scatter_v_async(array<int, __LINE__>{}, y);          //! this array is a temporary
  kept = c.reduce_scatter_v_async(x, array<int, __LINE__>{});          //! this array is a temporary
}
void messages(Communicator& c) {
  kept = c.send_async(std::vector<float>(1 << 18, 1.f), 1);            //! this array is a temporary
  kept = c.send_async(std::initializer_list<float>{1, 2}, 1);          //! this array is a temporary
  kept = c.send_async(Silent<__LINE__>(), 1);                          //! this array is a temporary
  kept = c.recv_async(std::vector<int>(4), 1);                         //! this array is a temporary
  kept = c.send_async(array<Particle, __LINE__>{}, 1);                 //! this array is a temporary
  kept = c.recv_async(array<Particle, __LINE__>{}, 1);                 //! this array is a temporary
  c.recv(array<Particle, __LINE__>{}, 1);                              //! this array is a temporary
  std::vector<hocket::Outgoing> out{{array<char8_t, 1>{}, 1}};         //! this element type can be
  std::vector<hocket::Outgoing> to{{array<std::byte, __LINE__>{}, 1}};   //! this array is a temporary
  std::vector<hocket::Incoming> in{{array<std::byte, __LINE__>{}, 1}};   //! this array is a temporary
}
void others(Communicator& c) {
  const hocket::Extremes result{.values = array<long, __LINE__>{}};    //! this array is a temporary
  kept = hocket::argmin_async(c, array<long, __LINE__>{}, result);     //! this array is a temporary
  made = hocket::prepare_argmax(c, array<long, __LINE__>{}, result);   //! this array is a temporary
  const hocket::ExtremeOptions index{.index = array<long, __LINE__>{}};  //! this array is a temporary
  const hocket::Operator op = operator_of<double>(std::plus<>{});
  kept = hocket::all_reduce_async(c, array<short, __LINE__>{}, y, op);  //! this array is a temporary
  made = hocket::prepare_all_reduce(c, array<short, __LINE__>{}, y, op);  //! this array is a temporary
  kept = hocket::reduce_async(c, array<short, __LINE__>{}, y, op);  //! this array is a temporary
  made = hocket::prepare_reduce(c, array<short, __LINE__>{}, y, op);  //! this array is a temporary
  kept = hocket::scan_async(c, array<short, __LINE__>{}, y, op);  //! this array is a temporary
  made = hocket::prepare_scan(c, array<short, __LINE__>{}, y, op);  //! this array is a temporary
  kept = hocket::exscan_async(c, array<short, __LINE__>{}, y, op);  //! this array is a temporary
  made = hocket::prepare_exscan(c, array<short, __LINE__>{}, y, op);  //! this array is a temporary
  kept = hocket::reduce_scatter_async(c, array<short, __LINE__>{}, y, op);  //! this array is a temporary
  made = hocket::prepare_reduce_scatter(c, array<short, __LINE__>{}, y, op);  //! this array is a temporary
  kept = c.send_async(c.symmetric().empty<float>(4), 1);  //! this is a temporary
  kept = c.all_reduce_async(c.symmetric().empty<float>(4));  //! this is a temporary
  float* gone = c.symmetric().empty<float>(4).data<float>();  //! this is a temporary
}
// A result that is gone with the statement, also of calls that block.
void results(Communicator& c) {
  c.all_reduce(array<unsigned, __LINE__>{});     //! this array is a temporary
  c.recv(array<unsigned, __LINE__>{}, 0);        //! this array is a temporary
  c.gather(x, array<unsigned, __LINE__>{});      //! this array is a temporary
}

// --- Arguments that are not arrays --------------------------------------------------------------

void elements(Communicator& c, std::vector<std::string>& s, std::vector<Particle>& p) {
  std::vector<long double> l;
  std::vector<std::vector<float>> nested;
  float matrix[2][2];
  c.all_reduce(s);        //! this element type can be neither moved nor reduced
  c.all_reduce(p);        //! pass std::as_writable_bytes(std::span(x))
  c.all_reduce(l);        //! this element type can be neither moved nor reduced
  c.broadcast(nested);    //! this element type can be neither moved nor reduced
  c.broadcast(matrix);    //! this element type can be neither moved nor reduced
  c.send(std::vector<std::unique_ptr<int>>(2), 1);  //! this element type can be neither moved
}
void no_arrays(Communicator& c, double* p, const std::vector<double>& input) {
  std::vector<bool> bits;
  std::deque<float> deque;
  std::list<float> list;
  double number = 0;
  c.all_reduce(bits);                         //! packed bits: use uint8_t
  c.send(bits, 1);                            //! packed bits: use uint8_t
  kept = c.send_async(bits, 1);               //! packed bits: use uint8_t
  c.all_reduce(deque);                        //! not contiguous: copy it into a std::vector
  c.send(list, 1);                            //! not contiguous: copy it into a std::vector
  c.all_reduce(p);                            //! a pointer has no size: pass std::span(p, count)
  c.send(p, 1);                               //! a pointer has no size: pass std::span(p, count)
  kept = c.send_async(p, 1);                  //! a pointer has no size: pass std::span(p, count)
  c.send(hocket::scalar(2.5), 1);             //! this number is a temporary: give it a name
  c.reduce(x, nullptr);                       //! a pointer has no size: pass std::span(p, count)
  c.all_reduce({1.f, 2.f});                   //! a list is no array
  c.send({1, 2, 3}, 1);                       //! a list is no array
  kept = c.send_async({1.0, 2.0}, 1);         //! a list is no array
  c.all_reduce(number);                       //! for one number pass hocket::scalar(x)
  c.all_reduce(input);                        //! the elements are const
  c.all_reduce(x, input);                     //! the elements are const
  c.recv(std::span<const double>(x), 0);      //! the elements are const
  kept = c.all_reduce_async(x, input);        //! the elements are const
  made = c.prepare_gather(x, input);          //! the elements are const
}

// --- Operators ----------------------------------------------------------------------------------

void operators(Communicator& c) {
  double factor = 2;
  hocket::all_reduce(c, x, y, operator_of<double>(Scaled{2}));  //! it must outlive the call
  hocket::all_reduce(c, x, y,
      operator_of<double>([&](double a, double b) { return a + factor * b; }));  //! it must outlive
  const auto sum = [](double a, double b) { return a + b; };
  hocket::all_reduce(c, x, y, sum);  //! pass hocket::operator_of<double>(function)
  kept = hocket::all_reduce_async(c, x, y, std::plus<>{});  //! pass hocket::operator_of<double>
  made = hocket::prepare_all_reduce(c, x, y, sum);  //! pass hocket::operator_of<double>(function)
  hocket::reduce(c, x, y, sum);  //! pass hocket::operator_of<double>(function)
  kept = hocket::reduce_async(c, x, y, std::plus<>{});  //! pass hocket::operator_of<double>
  made = hocket::prepare_reduce(c, x, y, sum);  //! pass hocket::operator_of<double>(function)
  hocket::scan(c, x, y, sum);  //! pass hocket::operator_of<double>(function)
  kept = hocket::scan_async(c, x, y, std::plus<>{});  //! pass hocket::operator_of<double>
  made = hocket::prepare_scan(c, x, y, sum);  //! pass hocket::operator_of<double>(function)
  hocket::exscan(c, x, y, sum);  //! pass hocket::operator_of<double>(function)
  kept = hocket::exscan_async(c, x, y, std::plus<>{});  //! pass hocket::operator_of<double>
  made = hocket::prepare_exscan(c, x, y, sum);  //! pass hocket::operator_of<double>(function)
  hocket::reduce_scatter(c, x, y, sum);  //! pass hocket::operator_of<double>(function)
  kept = hocket::reduce_scatter_async(c, x, y, std::plus<>{});  //! pass hocket::operator_of<double>
  made = hocket::prepare_reduce_scatter(c, x, y, sum);  //! pass hocket::operator_of<double>(function)
}

// --- Results that must not be dropped -----------------------------------------------------------

void dropped(Communicator& c, hocket::World& world) {
  c.all_reduce_async(x);                    //! keep it and wait()
  c.send_async(x, 1);                       //! keep it and wait()
  c.barrier_async();                        //! keep it and wait()
  c.all_gather_v_async(x, y);               //! keep it and wait()
  hocket::argmin_async(c, x, {});           //! keep it and wait()
  made.start();                             //! keep it and wait()
  c.prepare_all_reduce(x);                  //! keep it and call it
  c.split({.color = 1});                    //! the others call it in vain
  c.duplicate();                            //! the others call it in vain
  c.new_group(std::array{0});               //! the others call it in vain
  c.rebuild();                              //! the others call it in vain
  world.new_group(std::array{0});           //! the others call it in vain
  hocket::init();                           //! keep it to the end
  c.symmetric().empty<float>(4);            //! its memory goes with it
  c.probe_now(0);                           //! whether a message is there
  c.status();                               //! it throws nothing
  c.end_task();                             //! calls are under way
  kept.wait_for(hocket::Duration(1));       //! the call goes on
  kept.error();                             //! it throws nothing
  kept.received();                          //! it does not wait
  hocket::wait_some({&kept, 1});            //! the places of those that have ended
  hocket::wait_any({&kept, 1});             //! the place of one that has ended
  hocket::wait_all({&kept, 1}, hocket::Duration(1));  //! the calls go on
  operator_of<double>(std::plus<>{});       //! pass it to hocket::all_reduce
  hocket::recv_object(c, 0);                //! the message has been taken
  hocket::recv_sparse(c, 0);                //! the message has been taken
  hocket::all_gather_object(c, {});         //! what came is in it alone
  hocket::all_reduce_sparse(c, {});         //! the result is in it alone
  hocket::connect_store({});                //! it disconnects at once
  hocket::make_memory_store();              //! it goes with its last owner
}
