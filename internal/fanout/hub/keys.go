package hub

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"sshpace/internal/base/fault"
	"sshpace/internal/fanout/job"
	"sshpace/internal/sys/safedir"
)

// keys are those that a hub signs credentials with. They never leave its state directory.
type keys struct {
	operator, account, system nkeys.KeyPair
}

// keysFile has their seeds, one a line.
const keysFile = "keys"

// openKeys reads the keys of a state directory; make makes missing ones.
func openKeys(dir *safedir.Directory, make bool) (k keys, err error) {
	f, err := dir.Own(keysFile)
	if make && errors.Is(err, fs.ErrNotExist) {
		if err = makeKeys(dir); err == nil {
			f, err = dir.Own(keysFile)
		}
	}
	if err != nil {
		return k, err
	}
	defer f.Close()
	var text bytes.Buffer
	if _, err = text.ReadFrom(f); err != nil {
		return k, err
	}
	seeds := bytes.Fields(text.Bytes())
	if len(seeds) != 3 {
		return k, fmt.Errorf("%s has %d lines, not 3", f.Name(), len(seeds))
	}
	for i, pair := range []*nkeys.KeyPair{&k.operator, &k.account, &k.system} {
		if *pair, err = nkeys.FromSeed(seeds[i]); err != nil {
			return k, fmt.Errorf("%s: line %d: %w", f.Name(), i+1, err)
		}
	}
	return k, nil
}

// makeKeys makes the file of keys, whole or not at all.
func makeKeys(dir *safedir.Directory) error {
	var text []byte
	for _, create := range []func() (nkeys.KeyPair, error){nkeys.CreateOperator, nkeys.CreateAccount, nkeys.CreateAccount} {
		pair, err := create()
		if err != nil {
			return err
		}
		seed, err := pair.Seed()
		if err != nil {
			return err
		}
		text = append(append(text, seed...), '\n')
	}
	const unfinished = keysFile + ".new"
	if err := dir.Remove(unfinished); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	f, err := dir.Create(unfinished)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return dir.Rename(unfinished, keysFile)
}

// itself is the role of the hub in its own process.
const itself job.Role = "hub"

// inbox returns the prefix of the subjects that answers for a role come to.
func inbox(r job.Role) string { return "_INBOX." + strings.ReplaceAll(string(r), ":", ".") }

// permissions returns the subjects that a role may publish to and subscribe to. Filters of
// consumers and subjects of direct requests are parts of those, so that a launcher sees its pool.
func permissions(r job.Role) (p jwt.Permissions) {
	if r == itself {
		return p
	}
	p.Sub.Allow.Add(inbox(r) + ".>")
	those := ">" // of a kind
	if pool, works := r.Pool(); works {
		those = pool + ".>"
		p.Pub.Allow.Add("event."+pool+".>", "alive."+pool+".>", "$JS.ACK."+batches+"."+pool+".>",
			"$JS.API.CONSUMER.CREATE."+batches+"."+pool+".batch."+pool+".>", "$JS.API.CONSUMER.MSG.NEXT."+batches+"."+pool)
	} else {
		p.Pub.Allow.Add("job.>", "stop.>", "batch.>", "$JS.API.CONSUMER.LIST."+batches)
		for _, name := range []string{jobs, batches, events, alive} {
			p.Pub.Allow.Add("$JS.API.STREAM.INFO."+name, "$JS.API.STREAM.PURGE."+name)
		}
	}
	for _, kind := range []string{"job", "stop", "event", "alive"} {
		name := streamOf[kind]
		p.Pub.Allow.Add("$JS.API.DIRECT.GET."+name+"."+kind+"."+those, "$JS.API.CONSUMER.CREATE."+name+".*."+kind+"."+those,
			"$JS.API.CONSUMER.MSG.NEXT."+name+".*")
	}
	return p
}

// credential is shown to the hub by a user: a signed token, and the seed of the key in it.
type credential struct {
	Token string `json:"jwt"`
	Seed  string `json:"seed"`
}

// Credential makes a .creds file, by the keys in the directory of a hub.
func (NATS) Credential(directory string, r job.Role, valid time.Duration) ([]byte, error) {
	var k keys
	dir, err := safedir.Open(directory)
	if err == nil {
		defer dir.Close()
		k, err = openKeys(dir, false)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.WithHint(fmt.Errorf("%s has no keys of a hub", directory), "start the hub once, or name its directory by --dir")
	}
	if err != nil {
		return nil, err
	}
	c, err := k.credential(r, valid)
	if err != nil {
		return nil, err
	}
	return jwt.FormatUserConfig(c.Token, []byte(c.Seed))
}

// credential makes a credential for a role, which is valid for a time.
func (k keys) credential(r job.Role, valid time.Duration) (c credential, err error) {
	user, err := nkeys.CreateUser()
	if err != nil {
		return c, err
	}
	name, err := user.PublicKey()
	if err != nil {
		return c, err
	}
	seed, err := user.Seed()
	if err != nil {
		return c, err
	}
	claims := jwt.NewUserClaims(name)
	claims.Name, claims.Expires, claims.Permissions = string(r), time.Now().Add(valid).Unix(), permissions(r)
	c.Seed = string(seed)
	c.Token, err = claims.Encode(k.account)
	return c, err
}
