package channel

// Message numbers (RFC 4254 section 9).
const (
	msgGlobalRequest  = 80
	msgRequestSuccess = 81
	msgRequestFailure = 82
	msgOpen           = 90
	msgConfirmation   = 91
	msgOpenFailure    = 92
	msgWindowAdjust   = 93
	msgData           = 94
	msgExtendedData   = 95
	msgEOF            = 96
	msgClose          = 97
	msgRequest        = 98
	msgSuccess        = 99
	msgFailure        = 100
)

// MaxMessage is the most that is taken from a peer at once, as OpenSSH does; RFC 4253
// section 6.1 demands 35,000.
const MaxMessage = 256 << 10

const (
	// window is how much a server may send on a channel before it is told to go
	// on: what fills a gigabit over 15 ms.
	window = 2 << 20
	// maxPacket is how much of that it may send at once (RFC 4254 section 5.1).
	maxPacket = 32 << 10
)

// Open asks for a channel (RFC 4254 section 5.1) that has a number on our side.
func Open(kind string, number uint32, specific []byte) []byte {
	p := AppendText([]byte{msgOpen}, kind)
	for _, n := range []uint32{number, window, maxPacket} {
		p = AppendNumber(p, n)
	}
	return append(p, specific...)
}

// Request is a request on the channel that has a number on the server's side
// (RFC 4254 section 5.4).
func Request(number uint32, name string, reply bool, specific []byte) []byte {
	p := AppendText(numbered(msgRequest, number), name)
	return append(AppendBool(p, reply), specific...)
}

// EOF says that no more data follows on a channel (RFC 4254 section 5.3).
func EOF(number uint32) []byte { return numbered(msgEOF, number) }

// Text encodes strings as requests hold them.
func Text(texts ...string) []byte {
	var p []byte
	for _, s := range texts {
		p = AppendText(p, s)
	}
	return p
}

func numbered(kind byte, number uint32) []byte { return AppendNumber([]byte{kind}, number) }
