// Two cycles of monitoring, then commanding; the arm stands where start.txt says and follows at once.
#pragma once
#include <cstdio>
#include "friLBRClient.h"
#include "friUdpConnection.h"
namespace KUKA {
namespace FRI {
class ClientApplication {
 public:
  ClientApplication(UdpConnection&, LBRClient& client) : client_(client) {}
  bool connect(int, const char*) {
    std::FILE* start = std::fopen("start.txt", "r");
    if (!start) return false;
    for (double& value : client_.state.ipo)
      if (std::fscanf(start, "%lf", &value) != 1) return false;
    std::fclose(start);
    client_.state.measured = client_.state.ipo;
    file_ = std::fopen("commanded.txt", "w");
    return true;
  }
  void disconnect() { std::fclose(file_); }
  bool step() {
    if (++cycle_ == 1) client_.onStateChange(IDLE, MONITORING_WAIT);
    if (cycle_ == 2) client_.onStateChange(MONITORING_WAIT, COMMANDING_ACTIVE);
    if (cycle_ <= 2) return true;
    client_.command();
    for (int i = 0; i < 7; ++i) {
      std::fprintf(file_, i < 6 ? "%.12g " : "%.12g\n", client_.wanted.q[i]);
      client_.state.torque[i] = 2.0 + i;
    }
    client_.state.measured = client_.wanted.q;
    return true;
  }

 private:
  LBRClient& client_;
  int cycle_ = 0;
  std::FILE* file_ = nullptr;
};
}  // namespace FRI
}  // namespace KUKA
