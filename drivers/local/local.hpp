/// \file
/// Driver `local`: an Ethernet of the processes of one machine, without DPDK and without rights.
/// A wire is a folder. Each port is a datagram socket in it, whose file is named by the port's
/// Ethernet address, so that the folder is the list of who is there; its permissions say who may
/// join. Processes come and go as they like.
///
/// - WireFolder: who is on the wire, and the claim of an address.
/// - FramePool: the buffers of a port.
/// - reset_for(): the reset that a process which has died would answer with, so that its peers
///   learn of its end with the next segment that they send it.
/// - LocalPort: the port::Port. A datagram holds up to kMostFrames frames for one receiver, each
///   behind its length. Frames to a group address go to everybody.
///
/// Frames are lost as on any Ethernet: to an address that nobody has, to a process that has died,
/// and to one that reads nothing for kPatience. Before that a receiver whose queue is full makes
/// the sender wait. What a foreign process writes into the socket is checked as a frame is.
///
/// Limits: Linux; the folder's path has at most kMostPath octets.
#pragma once

#include "local/last_word.hpp"
#include "local/local_port.hpp"
#include "local/wire_folder.hpp"
