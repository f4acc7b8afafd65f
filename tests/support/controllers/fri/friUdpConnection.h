#pragma once
namespace KUKA {
namespace FRI {
class UdpConnection {};
}  // namespace FRI
}  // namespace KUKA
