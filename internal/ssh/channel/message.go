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

// MaxMessage is the most that is accepted from a peer at once, as in OpenSSH; RFC 4253 section 6.1
// demands 35,000.
const MaxMessage = 256 << 10

const (
	// window is how much a server may send on a channel before it gets more room: enough for a
	// gigabit over 15 ms. It is ours; OpenSSH's is unit.ChannelWindow.
	window = 2 << 20
	// maxPacket is how much of that it may send at once (RFC 4254 section 5.1).
	maxPacket = 32 << 10
)

// Open returns the request for a channel (RFC 4254 section 5.1) with a number on our side.
func Open(kind string, number uint32, specific []byte) []byte {
	p := AppendText([]byte{msgOpen}, kind)
	for _, n := range []uint32{number, window, maxPacket} {
		p = AppendNumber(p, n)
	}
	return append(p, specific...)
}

// Request returns a request on the channel with a number on the server's side (RFC 4254 section
// 5.4).
func Request(number uint32, name string, reply bool, specific []byte) []byte {
	p := AppendText(numbered(msgRequest, number), name)
	return append(AppendBool(p, reply), specific...)
}

// EOF reports that no more data follows on a channel (RFC 4254 section 5.3).
func EOF(number uint32) []byte { return numbered(msgEOF, number) }

// Text encodes strings as in requests.
func Text(texts ...string) []byte {
	var p []byte
	for _, s := range texts {
		p = AppendText(p, s)
	}
	return p
}

func numbered(kind byte, number uint32) []byte { return AppendNumber([]byte{kind}, number) }
