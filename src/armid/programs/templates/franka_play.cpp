@facts@
//
// play ROBOT_ADDRESS [--full-speed] [--velocity] [--log FILE] [--motion FILE] [--yes]

#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include <franka/exception.h>
#include <franka/robot.h>

#include "motion.hpp"

namespace {

struct Row {
  double time;
  armid::Joints q, dq, tau, q_d, tau_d;
};

struct Options {
  std::string address, log, motion = "motion.txt";
  bool full_speed = false, velocity = false, yes = false;
};

Options parsed(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--full-speed") options.full_speed = true;
    else if (word == "--velocity") options.velocity = true;
    else if (word == "--yes") options.yes = true;
    else if (word == "--log" && i + 1 < argc) options.log = argv[++i];
    else if (word == "--motion" && i + 1 < argc) options.motion = argv[++i];
    else if (options.address.empty() && word[0] != '-') options.address = word;
    else throw std::runtime_error("unknown word " + word);
  }
  if (options.address.empty())
    throw std::runtime_error("usage: play ROBOT_ADDRESS [--full-speed] [--velocity] [--log FILE] [--motion FILE] [--yes]");
  return options;
}

void ask(const Options& options, const std::string& question) {
  std::cout << question << std::endl;
  if (!options.yes) std::cin.ignore(1000, '\n');
}

Row row_of(double time, const franka::RobotState& state) {
  return {time, state.q, state.dq, state.tau_J, state.q_d, state.tau_J_d};
}

// Time along the motion advances by the robot's own clock, times the speed.
void play(franka::Robot& robot, const armid::Motion& motion, double speed, bool velocity, std::vector<Row>* log) {
  double clock = 0.0;
  const auto step = [&](const franka::RobotState& state, franka::Duration period) {
    clock += period.toSec();
    if (log) log->push_back(row_of(clock, state));
    return motion.at(speed * clock);
  };
  const double end = motion.duration() / speed - armid::TICK / 2;
  if (velocity) {
    robot.control([&](const franka::RobotState& state, franka::Duration period) -> franka::JointVelocities {
      armid::Joints qd = step(state, period).qd;
      for (double& value : qd) value *= speed;
      franka::JointVelocities out(qd);
      return clock >= end ? franka::MotionFinished(out) : out;
    });
    return;
  }
  robot.control([&](const franka::RobotState& state, franka::Duration period) -> franka::JointPositions {
    franka::JointPositions out(step(state, period).q);
    return clock >= end ? franka::MotionFinished(out) : out;
  });
}

void write(const std::string& path, const std::vector<Row>& log) {
  const std::string partial = path + ".part";
  std::FILE* file = std::fopen(partial.c_str(), "w");
  if (!file) throw std::runtime_error(partial + ": cannot be written");
  std::fputs("time", file);
  for (const char* word : {"q", "dq", "tau_J", "q_d", "tau_J_d"})
    for (int i = 0; i < armid::N; ++i) std::fprintf(file, ",state.%s[%d]", word, i);
  std::fputc('\n', file);
  for (const Row& row : log) {
    std::fprintf(file, "%.6f", row.time);
    for (const armid::Joints* part : {&row.q, &row.dq, &row.tau, &row.q_d, &row.tau_d})
      for (double value : *part) std::fprintf(file, ",%.9g", value);
    std::fputc('\n', file);
  }
  if (std::fclose(file) != 0 || std::rename(partial.c_str(), path.c_str()) != 0)
    throw std::runtime_error(path + ": cannot be written");
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Options options = parsed(argc, argv);
    const armid::Motion motion = armid::Motion::read(options.motion);
    const double speed = options.full_speed ? 1.0 : armid::DRY_RUN_SPEED;
    franka::Robot robot(options.address);
    const armid::Joints start = motion.at(0.0).q;
    ask(options, "The arm moves slowly to the start. Is the way free? Enter to go on.");
    const armid::Motion approach = armid::Motion::straight(robot.readOnce().q_d, start, armid::APPROACH_SPEED);
    play(robot, approach, 1.0, false, nullptr);
    ask(options, options.full_speed ? "Full speed. Hand on the stop button. Enter to start."
                                    : "Dry run. Hand on the stop button. Enter to start.");
    std::vector<Row> log;
    log.reserve(static_cast<size_t>(motion.duration() / speed / armid::TICK) + 1000);
    try {
      play(robot, motion, speed, options.velocity, &log);
    } catch (const franka::Exception& problem) {
      if (!options.log.empty()) write(options.log, log);
      throw;
    }
    if (!options.log.empty()) {
      write(options.log, log);
      std::cout << log.size() << " rows in " << options.log << std::endl;
    }
  } catch (const std::exception& problem) {
    std::cerr << "play: " << problem.what() << std::endl;
    return 1;
  }
  return 0;
}
