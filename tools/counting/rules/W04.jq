# Windows 11 Pro uses two sockets.
include "estate";
[.[] | select((.windows | contains("Windows 11 Pro")) and .sockets > 2) | .id]
