package relay

import "time"

// Direction is the destination of bytes.
type Direction uint8

// The directions, seen from the client.
const (
	Up   Direction = iota // to the server
	Down                  // to the client
)

// Seen is a piece of data that went past. Data is only valid during the call.
type Seen struct {
	Conn    int // connections count from 1
	Dir     Direction
	Arrived time.Time // at the relay
	Due     time.Time // when it was to leave
	Left    time.Time // handed to the kernel for the other end
	Waited  bool      // the other end had no room for it when it was due
	Data    []byte    // empty: the direction has ended
}
