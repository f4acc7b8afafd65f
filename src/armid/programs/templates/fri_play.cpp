@facts@
//
// play CONTROLLER_ADDRESS [--full-speed] [--log FILE] [--motion FILE] [--port 30200]

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>
#include <vector>

#include "friClientApplication.h"
#include "friLBRClient.h"
#include "friUdpConnection.h"

#include "motion.hpp"

namespace {

struct Row {
  double time;
  armid::Joints measured, commanded, torque, external;
};

class Player : public KUKA::FRI::LBRClient {
 public:
  Player(const armid::Motion& motion, double speed) : motion_(motion), speed_(speed) {
    log_.reserve(static_cast<size_t>(motion.duration() / speed / armid::TICK) + 1000);
  }

  void onStateChange(KUKA::FRI::ESessionState, KUKA::FRI::ESessionState next) override {
    if (next == KUKA::FRI::COMMANDING_ACTIVE && !checked_) {
      checked_ = true;
      const armid::Joints start = motion_.at(0.0).q;
      for (int i = 0; i < armid::N; ++i)
        if (std::fabs(robotState().getIpoJointPosition()[i] - start[i]) > 0.01) {
          std::cerr << "play: joint " << i + 1 << " is not at the start of the motion; the arm stays where it is" << std::endl;
          refused_ = true;
        }
    }
    if (started_ && next != KUKA::FRI::COMMANDING_ACTIVE) ended_ = true;
  }

  void command() override {
    const double* here = robotState().getIpoJointPosition();
    if (refused_ || ended_) {
      robotCommand().setJointPosition(here);
      return;
    }
    started_ = true;
    clock_ += robotState().getSampleTime();
    const armid::Joints q = motion_.at(speed_ * clock_).q;
    robotCommand().setJointPosition(q.data());
    keep(q);
    if (clock_ >= motion_.duration() / speed_ + 0.5) ended_ = true;
  }

  bool ended() const { return ended_ || refused_; }
  bool refused() const { return refused_; }
  const std::vector<Row>& log() const { return log_; }

 private:
  void keep(const armid::Joints& commanded) {
    Row row{clock_, {}, commanded, {}, {}};
    std::memcpy(row.measured.data(), robotState().getMeasuredJointPosition(), sizeof(row.measured));
    std::memcpy(row.torque.data(), robotState().getMeasuredTorque(), sizeof(row.torque));
    std::memcpy(row.external.data(), robotState().getExternalTorque(), sizeof(row.external));
    log_.push_back(row);
  }

  const armid::Motion& motion_;
  double speed_, clock_ = 0.0;
  bool checked_ = false, refused_ = false, started_ = false, ended_ = false;
  std::vector<Row> log_;
};

void write(const std::string& path, const std::vector<Row>& log) {
  const std::string partial = path + ".part";
  std::FILE* file = std::fopen(partial.c_str(), "w");
  if (!file) throw std::runtime_error(partial + ": cannot be written");
  std::fputs("time", file);
  for (const char* word : {"measured_position", "commanded_position", "measured_torque", "external_torque"})
    for (int i = 0; i < armid::N; ++i) std::fprintf(file, ",%s_%d", word, i);
  std::fputc('\n', file);
  for (const Row& row : log) {
    std::fprintf(file, "%.6f", row.time);
    for (const armid::Joints* part : {&row.measured, &row.commanded, &row.torque, &row.external})
      for (double value : *part) std::fprintf(file, ",%.9g", value);
    std::fputc('\n', file);
  }
  if (std::fclose(file) != 0 || std::rename(partial.c_str(), path.c_str()) != 0)
    throw std::runtime_error(path + ": cannot be written");
}

}  // namespace

int main(int argc, char** argv) {
  try {
    std::string address, log, file = "motion.txt";
    int port = 30200;
    bool full_speed = false;
    for (int i = 1; i < argc; ++i) {
      const std::string word = argv[i];
      if (word == "--full-speed") full_speed = true;
      else if (word == "--log" && i + 1 < argc) log = argv[++i];
      else if (word == "--motion" && i + 1 < argc) file = argv[++i];
      else if (word == "--port" && i + 1 < argc) port = std::atoi(argv[++i]);
      else if (address.empty() && word[0] != '-') address = word;
      else throw std::runtime_error("unknown word " + word);
    }
    if (address.empty())
      throw std::runtime_error("usage: play CONTROLLER_ADDRESS [--full-speed] [--log FILE] [--motion FILE] [--port 30200]");
    const armid::Motion motion = armid::Motion::read(file);
    Player player(motion, full_speed ? 1.0 : armid::DRY_RUN_SPEED);
    KUKA::FRI::UdpConnection connection;
    KUKA::FRI::ClientApplication application(connection, player);
    if (!application.connect(port, address.c_str())) throw std::runtime_error("no connection to " + address);
    std::cout << "waiting for ArmidPlay on the smartPAD" << std::endl;
    while (!player.ended() && application.step()) {
    }
    application.disconnect();
    if (!log.empty()) {
      write(log, player.log());
      std::cout << player.log().size() << " rows in " << log << std::endl;
    }
    return player.refused() ? 1 : 0;
  } catch (const std::exception& problem) {
    std::cerr << "play: " << problem.what() << std::endl;
    return 1;
  }
}
