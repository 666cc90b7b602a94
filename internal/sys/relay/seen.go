package relay

import "time"

// Direction is where bytes go.
type Direction uint8

// The directions, seen from the one who connects.
const (
	Up   Direction = iota // to the server
	Down                  // to the client
)

// Seen is bytes that went past. Data is only valid during the call.
type Seen struct {
	Conn    int // connections are counted from 1
	Dir     Direction
	Arrived time.Time // at the relay
	Due     time.Time // when it was to leave
	Left    time.Time // handed to the kernel for the other end
	Waited  bool      // the other end had no room for it when it was due
	Data    []byte    // none: the direction has ended
}
