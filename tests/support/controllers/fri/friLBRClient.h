// Declarations of the FRI client calls that play.cpp uses, and a stand-in of the controller behind them.
#pragma once
#include <array>
#include <cstdlib>
namespace KUKA {
namespace FRI {
enum ESessionState { IDLE = 0, MONITORING_WAIT, MONITORING_READY, COMMANDING_WAIT, COMMANDING_ACTIVE };
struct LBRState {
  std::array<double, 7> measured{}, torque{}, external{}, ipo{};
  const double* getMeasuredJointPosition() const { return measured.data(); }
  const double* getMeasuredTorque() const { return torque.data(); }
  const double* getExternalTorque() const { return external.data(); }
  const double* getIpoJointPosition() const { return ipo.data(); }
  double getSampleTime() const { return 0.005; }
};
struct LBRCommand {
  std::array<double, 7> q{};
  void setJointPosition(const double* values) { std::copy(values, values + 7, q.begin()); }
};
class LBRClient {
 public:
  virtual ~LBRClient() = default;
  virtual void onStateChange(ESessionState, ESessionState) {}
  virtual void monitor() {}
  virtual void waitForCommand() {}
  virtual void command() {}
  const LBRState& robotState() const { return state; }
  LBRCommand& robotCommand() { return wanted; }
  LBRState state;
  LBRCommand wanted;
};
}  // namespace FRI
}  // namespace KUKA
