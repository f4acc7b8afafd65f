// Declarations of the libfranka calls that play.cpp uses, and a stand-in of the controller behind them.
#pragma once
#include <stdexcept>
namespace franka {
struct Exception : std::runtime_error {
  using std::runtime_error::runtime_error;
};
}  // namespace franka
