// A resumable operation, written as a coroutine.
//
// Engines and algorithms are ordinary sequential code. Where they need an action of a peer, they
// say `co_await until([&] { return ...; })`. The thread that waits for the operation calls `step()`
// repeatedly. This is either the thread of a blocking caller or the progress thread. A step never
// blocks. A step of a waiting task costs one call of the condition.
#pragma once

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <utility>

namespace hocket::engine {

enum class Poll : bool { kPending, kDone };

// Allocate and free the memory of coroutine frames. Each thread caches free frames, because every
// call needs a frame, of one of few sizes.
void* allocate_frame(std::size_t bytes);
void free_frame(void* frame, std::size_t bytes) noexcept;

// A resource: owns a suspended coroutine. It can be moved. One thread at a time steps it.
// Destroying a pending task abandons it at its current point and destroys its local variables,
// whose destructors release the engine's resources. An exception in the task ends it and leaves
// `step`.
class [[nodiscard]] Task {
 public:
  struct promise_type;
  using Handle = std::coroutine_handle<promise_type>;

  Task() noexcept = default;
  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, {})) {}
  Task& operator=(Task&& other) noexcept {
    if (this != &other) {
      reset();
      handle_ = std::exchange(other.handle_, {});
    }
    return *this;
  }
  ~Task() { reset(); }

  // Runs until the next wait whose condition is false, or until the end. It must not be called
  // after the end.
  inline Poll step();

  void reset() noexcept {
    if (handle_) std::exchange(handle_, {}).destroy();
  }
  explicit operator bool() const noexcept { return static_cast<bool>(handle_); }
  // Returns how many waits of the task have ended. The number changes whenever the task makes
  // progress.
  inline std::uint32_t resumed() const noexcept;

  // `co_await engine.part(...)`: runs another task to its end as part of this one.
  inline auto operator co_await() && noexcept;

 private:
  explicit Task(Handle handle) noexcept : handle_(handle) {}
  Handle handle_;
};

struct Task::promise_type {
  // The promise of the outermost task, in which step() finds the next action.
  promise_type* root = this;
  Handle leaf;                     // the innermost coroutine, which is suspended
  bool (*ready)(void*) = nullptr;  // the condition that it waits for; null: none
  void* condition = nullptr;
  std::uint32_t resumed = 0;
  Handle parent;  // the awaiting coroutine; none for the outermost
  std::exception_ptr error;

  static void* operator new(std::size_t bytes) { return allocate_frame(bytes); }
  static void operator delete(void* frame, std::size_t bytes) noexcept { free_frame(frame, bytes); }

  Task get_return_object() noexcept {
    leaf = Handle::from_promise(*this);
    return Task(leaf);
  }
  std::suspend_always initial_suspend() noexcept { return {}; }

  struct Final {
    bool await_ready() noexcept { return false; }
    std::coroutine_handle<> await_suspend(Handle self) noexcept {
      promise_type& promise = self.promise();
      if (!promise.parent) return std::noop_coroutine();
      promise.root->leaf = promise.parent;
      return promise.parent;
    }
    void await_resume() noexcept {}
  };
  Final final_suspend() noexcept { return {}; }
  void return_void() noexcept {}
  void unhandled_exception() noexcept { error = std::current_exception(); }
};

inline Poll Task::step() {
  promise_type& promise = handle_.promise();
  if (promise.ready != nullptr) {
    if (!promise.ready(promise.condition)) return Poll::kPending;
    promise.ready = nullptr;
  }
  ++promise.resumed;
  promise.leaf.resume();
  if (!handle_.done()) return Poll::kPending;
  if (promise.error) std::rethrow_exception(promise.error);
  return Poll::kDone;
}

inline std::uint32_t Task::resumed() const noexcept {
  return handle_ ? handle_.promise().resumed : 0;
}

inline auto Task::operator co_await() && noexcept {
  struct Child {
    Handle handle;
    bool await_ready() noexcept { return false; }
    Handle await_suspend(Handle self) noexcept {
      promise_type& child = handle.promise();
      child.parent = self;
      child.root = self.promise().root;
      child.root->leaf = handle;
      return handle;
    }
    void await_resume() {
      if (handle.promise().error) std::rethrow_exception(handle.promise().error);
    }
  };
  return Child{handle_};
}

// Suspends the task until `condition()` is true. The condition must not block. An exception that it
// throws ends the task.
template <typename Condition>
auto until(Condition condition) noexcept {
  struct Awaiter {
    Condition condition;
    bool await_ready() { return condition(); }
    void await_suspend(Task::Handle self) noexcept {
      Task::promise_type& root = *self.promise().root;
      root.condition = &condition;
      root.ready = [](void* c) { return (*static_cast<Condition*>(c))(); };
    }
    void await_resume() noexcept {}
  };
  return Awaiter{std::move(condition)};
}

// Suspends the task once, so that its thread can do other work. Long computations without waits use
// it.
inline auto yield() noexcept {
  struct Awaiter {
    bool await_ready() noexcept { return false; }
    void await_suspend(Task::Handle) noexcept {}
    void await_resume() noexcept {}
  };
  return Awaiter{};
}

}  // namespace hocket::engine
