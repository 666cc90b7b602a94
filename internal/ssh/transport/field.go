package transport

import (
	"crypto/rand"
	"errors"
	"math/big"
	"strings"
	"sync"

	"sshpace/internal/ssh/channel"
)

// Groups 14 and 16 (RFC 3526 sections 3 and 5).
var (
	prime14 = prime(`
		FFFFFFFFFFFFFFFFC90FDAA22168C234C4C6628B80DC1CD129024E088A67CC74020BBEA63B139B22514A08798E3404DDEF9519B3CD3A431B302B0A6DF25F1437
		4FE1356D6D51C245E485B576625E7EC6F44C42E9A637ED6B0BFF5CB6F406B7EDEE386BFB5A899FA5AE9F24117C4B1FE649286651ECE45B3DC2007CB8A163BF05
		98DA48361C55D39A69163FA8FD24CF5F83655D23DCA3AD961C62F356208552BB9ED529077096966D670C354E4ABC9804F1746C08CA18217C32905E462E36CE3B
		E39E772C180E86039B2783A2EC07A28FB5C55DF06F4C52C9DE2BCBF6955817183995497CEA956AE515D2261898FA051015728E5A8AACAA68FFFFFFFFFFFFFFFF`)
	prime16 = prime(`
		FFFFFFFFFFFFFFFFC90FDAA22168C234C4C6628B80DC1CD129024E088A67CC74020BBEA63B139B22514A08798E3404DDEF9519B3CD3A431B302B0A6DF25F1437
		4FE1356D6D51C245E485B576625E7EC6F44C42E9A637ED6B0BFF5CB6F406B7EDEE386BFB5A899FA5AE9F24117C4B1FE649286651ECE45B3DC2007CB8A163BF05
		98DA48361C55D39A69163FA8FD24CF5F83655D23DCA3AD961C62F356208552BB9ED529077096966D670C354E4ABC9804F1746C08CA18217C32905E462E36CE3B
		E39E772C180E86039B2783A2EC07A28FB5C55DF06F4C52C9DE2BCBF6955817183995497CEA956AE515D2261898FA051015728E5A8AAAC42DAD33170D04507A33
		A85521ABDF1CBA64ECFB850458DBEF0A8AEA71575D060C7DB3970F85A6E1E4C7ABF5AE8CDB0933D71E8C94E04A25619DCEE3D2261AD2EE6BF12FFA06D98A0864
		D87602733EC86A64521F2B18177B200CBBE117577A615D6C770988C0BAD946E208E24FA074E5AB3143DB5BFCE0FD108E4B82D120A92108011A723C12A787E6D7
		88719A10BDBA5B2699C327186AF4E23C1A946834B6150BDA2583E9CA2AD44CE8DBBBC2DB04DE8EF92E8EFC141FBECAA6287C59474E6BC05D99B2964FA090C3A2
		233BA186515BE7ED1F612970CEE2D7AFB81BDD762170481CD0069127D5B05AA993B4EA988D8FDDC186FFB7DC90A6C08F4DF435C934063199FFFFFFFFFFFFFFFF`)
)

// prime parses digits, with space between them.
func prime(digits string) func() *big.Int {
	return sync.OnceValue(func() *big.Int {
		n, _ := new(big.Int).SetString(strings.Join(strings.Fields(digits), ""), 16)
		return n
	})
}

// field is our half of Diffie-Hellman in a finite field (RFC 4253 section 8).
type field struct {
	prime, private *big.Int
	ours           []byte
}

// newField makes a half. Its secret has twice as many bits as the strongest cipher needs.
func newField(prime, base *big.Int) *field {
	var secret [64]byte
	_, _ = rand.Read(secret[:]) // never fails
	f := &field{prime: prime, private: new(big.Int).SetBytes(secret[:])}
	f.ours = unsigned(new(big.Int).Exp(base, f.private, prime).Bytes())
	return f
}

func inGroup(prime func() *big.Int) func() (half, error) {
	return func() (half, error) { return newField(prime(), big.NewInt(2)), nil }
}

func (f *field) public() []byte { return f.ours }

func (f *field) secret(theirs []byte) ([]byte, error) {
	y := within(theirs, f.prime)
	if y == nil {
		return nil, errPublicValue
	}
	return channel.AppendText(nil, unsigned(y.Exp(y, f.private, f.prime).Bytes())), nil
}

// within returns a number of a message, nil unless it is between 1 and prime-1.
func within(b []byte, prime *big.Int) *big.Int {
	n := positive(b)
	if n == nil || n.Cmp(big.NewInt(1)) <= 0 || n.Cmp(new(big.Int).Sub(prime, big.NewInt(1))) >= 0 {
		return nil
	}
	return n
}

// positive returns a number of a message (RFC 4251 section 5), nil unless it is above zero.
func positive(b []byte) *big.Int {
	if len(b) == 0 || b[0]&0x80 != 0 {
		return nil
	}
	return new(big.Int).SetBytes(b)
}

// The bits of a group that the server chooses: at least, best, at most (RFC 8270).
const leastBits, bestBits, mostBits = 2048, 3072, 8192

// askGroup makes a half in a group of the server's (RFC 4419 section 3). asked and answered go into
// the exchange hash.
func (c *Conn) askGroup() (h half, hashed []byte, err error) {
	for _, bits := range []uint32{leastBits, bestBits, mostBits} {
		hashed = channel.AppendNumber(hashed, bits)
	}
	if err := c.sayKex(append([]byte{msgGroupRequest}, hashed...)); err != nil {
		return nil, nil, err
	}
	p, err := c.expect(msgGroup)
	if err != nil {
		return nil, nil, err
	}
	f := channel.FieldsOf(p)
	prime, base := positive(f.Text()), f.Text()
	if err := f.End(); err != nil {
		return nil, nil, err
	}
	if prime == nil || prime.BitLen() < leastBits || prime.BitLen() > mostBits || prime.Bit(0) == 0 || within(base, prime) == nil {
		return nil, nil, errors.New("ssh: the server's group is not valid")
	}
	return newField(prime, within(base, prime)), append(hashed, p[1:]...), nil
}
