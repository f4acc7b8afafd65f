// The stand-in runs the callback every millisecond, follows it at once, and writes what was commanded to commanded.txt.
#pragma once
#include <array>
#include <cmath>
#include <cstdio>
#include <functional>
#include <string>
#include "exception.h"
namespace franka {
using Array7 = std::array<double, 7>;
struct RobotState {
  Array7 q{}, dq{}, tau_J{}, q_d{}, dq_d{}, tau_J_d{};
};
class Duration {
 public:
  explicit Duration(unsigned long milliseconds) : milliseconds_(milliseconds) {}
  double toSec() const { return 1e-3 * static_cast<double>(milliseconds_); }

 private:
  unsigned long milliseconds_;
};
struct Finishable {
  bool motion_finished = false;
};
struct JointPositions : Finishable {
  JointPositions(const Array7& values) : q(values) {}
  Array7 q;
};
struct JointVelocities : Finishable {
  JointVelocities(const Array7& values) : dq(values) {}
  Array7 dq;
};
template <typename T>
T MotionFinished(T command) {
  command.motion_finished = true;
  return command;
}
class Robot {
 public:
  explicit Robot(const std::string&) {
    for (int i = 0; i < 7; ++i) state_.q[i] = state_.q_d[i] = 0.01 * i - (i == 3 ? 1.5 : 0.0) + (i == 5 ? 1.5 : 0.0);
    file_ = std::fopen("commanded.txt", "w");
  }
  ~Robot() { std::fclose(file_); }
  RobotState readOnce() { return state_; }
  void control(std::function<JointPositions(const RobotState&, Duration)> callback) {
    for (bool first = true;; first = false) {
      const JointPositions command = callback(state_, Duration(first ? 0 : 1));
      step(command.q);
      if (command.motion_finished) return;
    }
  }
  void control(std::function<JointVelocities(const RobotState&, Duration)> callback) {
    for (bool first = true;; first = false) {
      const JointVelocities command = callback(state_, Duration(first ? 0 : 1));
      Array7 q = state_.q;
      for (int i = 0; i < 7; ++i) q[i] += (first ? 0.0 : 1e-3) * 0.5 * (command.dq[i] + state_.dq_d[i]);
      state_.dq_d = command.dq;
      step(q);
      if (command.motion_finished) return;
    }
  }

 private:
  void step(const Array7& q) {
    for (int i = 0; i < 7; ++i) {
      if (std::fabs(q[i] - state_.q[i]) > 5e-3) throw Exception("a jump in joint " + std::to_string(i + 1));
      state_.dq[i] = (q[i] - state_.q[i]) / 1e-3;
      std::fprintf(file_, i < 6 ? "%.12g " : "%.12g\n", q[i]);
      state_.tau_J[i] = 1.0 + i + q[i];
    }
    state_.q = state_.q_d = q;
  }
  RobotState state_;
  std::FILE* file_;
};
}  // namespace franka
