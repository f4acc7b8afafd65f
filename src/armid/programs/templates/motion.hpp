// The motion of motion.txt: quintics between knots, held against the limits before anything moves.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace armid {

constexpr int N = @n@;
using Joints = std::array<double, N>;

constexpr Joints LOWER{{@lower@}};            // [rad]
constexpr Joints UPPER{{@upper@}};            // [rad]
constexpr Joints VELOCITY{{@velocity@}};      // [rad/s]
constexpr Joints ACCELERATION{{@acceleration@}};  // [rad/s^2]
constexpr double APPROACH_SPEED = @approach@;     // [rad/s]
constexpr double DRY_RUN_SPEED = @dry_run@;       // share of the speed
constexpr double TICK = @tick@;                   // [s]

struct State {
  Joints q, qd, qdd;
};

struct Knot {
  double time;
  State state;
};

// From `a` to `b` in `h` seconds, at fraction `s` of it.
inline State quintic(const State& a, const State& b, double h, double s) {
  State out;
  for (int i = 0; i < N; ++i) {
    const double p = a.q[i], v = h * a.qd[i], w = h * h * a.qdd[i];
    const double d0 = b.q[i] - p - v - w / 2, d1 = h * b.qd[i] - v - w, d2 = h * h * b.qdd[i] - w;
    const double c3 = 10 * d0 - 4 * d1 + d2 / 2, c4 = -15 * d0 + 7 * d1 - d2, c5 = 6 * d0 - 3 * d1 + d2 / 2;
    out.q[i] = p + s * (v + s * (w / 2 + s * (c3 + s * (c4 + s * c5))));
    out.qd[i] = (v + s * (w + s * (3 * c3 + s * (4 * c4 + s * 5 * c5)))) / h;
    out.qdd[i] = (w + s * (6 * c3 + s * (12 * c4 + s * 20 * c5))) / (h * h);
  }
  return out;
}

class Motion {
 public:
  explicit Motion(std::vector<Knot> knots) : knots_(std::move(knots)) {}

  static Motion read(const std::string& path) {
    std::ifstream file(path);
    if (!file) throw std::runtime_error(path + ": cannot be read");
    std::vector<Knot> knots;
    std::string line;
    while (std::getline(file, line)) {
      if (line.empty() || line[0] == '#') continue;
      std::istringstream words(line);
      Knot k{};
      words >> k.time;
      for (Joints* part : {&k.state.q, &k.state.qd, &k.state.qdd})
        for (double& value : *part) words >> value;
      if (!words) throw std::runtime_error(path + ": line " + std::to_string(knots.size() + 1) + " is not complete");
      if (!knots.empty() && !(k.time > knots.back().time)) throw std::runtime_error(path + ": times do not ascend");
      knots.push_back(k);
    }
    if (knots.size() < 2) throw std::runtime_error(path + ": fewer than two knots");
    Motion motion(std::move(knots));
    motion.check();
    return motion;
  }

  // Straight in joint space from rest to rest, no joint faster than `speed`.
  static Motion straight(const Joints& from, const Joints& to, double speed) {
    double far = 0.0;
    for (int i = 0; i < N; ++i) far = std::max(far, std::fabs(to[i] - from[i]));
    const double duration = std::max(1.0, 1.875 * far / speed);  // a quintic is 1.875 times its mean at its fastest
    return Motion({{0.0, {from, {}, {}}}, {duration, {to, {}, {}}}});
  }

  double duration() const { return knots_.back().time; }

  State at(double t) const {
    const double time = std::min(std::max(t, 0.0), duration());
    auto next = std::upper_bound(knots_.begin() + 1, knots_.end() - 1, time,
                                 [](double value, const Knot& k) { return value < k.time; });
    const Knot &a = *(next - 1), &b = *next;
    return quintic(a.state, b.state, b.time - a.time, (time - a.time) / (b.time - a.time));
  }

 private:
  void check() const {
    for (double t = 0.0; t <= duration() + TICK / 2; t += TICK) {
      const State s = at(t);
      for (int i = 0; i < N; ++i)
        if (s.q[i] < LOWER[i] - 1e-6 || s.q[i] > UPPER[i] + 1e-6 || std::fabs(s.qd[i]) > VELOCITY[i] * 1.001 ||
            std::fabs(s.qdd[i]) > ACCELERATION[i] * 1.01)
          throw std::runtime_error("joint " + std::to_string(i + 1) + " leaves its limits at " + std::to_string(t) + " s");
    }
  }

  std::vector<Knot> knots_;
};

}  // namespace armid
