package job

import (
	"context"
	"io"
	"net"
	"strings"
	"time"

	"sshpace/internal/base/fault"
	"sshpace/internal/fleet/history"
)

// Hub is the half of the program that knows the messages of a hub.
type Hub interface {
	// Dial connects to a hub, which has to be there; afterwards it connects again without end.
	Dial(ctx context.Context, a Address) (Bus, error)
	// Serve starts a hub in this process, or makes the streams on a cluster.
	Serve(ctx context.Context, s Serving) (Server, error)
	// Credential makes a credential file for a role, by the keys in the directory of a hub.
	Credential(dir string, r Role, valid time.Duration) ([]byte, error)
	// Connect connects in and out to the hub of a directory, with a credential for the role, until
	// one of them ends: Address.Open of another machine leads here.
	Connect(ctx context.Context, dir string, r Role, in io.Reader, out io.Writer) error
}

// Server is a hub that Serve has started.
type Server interface {
	Bus(ctx context.Context, r Role) (Bus, error)
	Close()
}

// Role is a user of a hub: client, or work:POOL.
type Role string

// RoleClient is the role of those who start jobs.
const RoleClient Role = "client"

const launchers = "work:"

// LauncherRole returns the role of the launchers of a pool.
func LauncherRole(pool string) Role { return Role(launchers + pool) }

// Pool returns the pool of launchers.
func (r Role) Pool() (pool string, ok bool) { return strings.CutPrefix(string(r), launchers) }

// Check refuses what is not a role.
func (r Role) Check() error {
	if pool, is := r.Pool(); is {
		return CheckName("pool", pool)
	}
	if r != RoleClient {
		return fault.Usage("the roles are client and work:POOL", "%q is not a role", r)
	}
	return nil
}

// Address is a hub, and who is there. One of Dir, Open and URL is set.
type Address struct {
	Role Role
	// Away is called once when the hub is away, with the reason, and once when it is back.
	Away func(err error)

	Dir     string                                  // of the hub of this machine
	Open    func(context.Context) (net.Conn, error) // makes a connection to a Connect
	URL     string                                  // tls://HOST:PORT, and nats:// on this machine
	Cluster bool                                    // of NATS: its own library dials URL

	Credential string // file, with URL
	Roots      string // file of certificates that vouch for the hub's, "" for those of the system
}

// Limits bound what a hub keeps.
type Limits struct {
	Bytes    int64         // of all events; jobs and batches have an eighth of it each
	Age      time.Duration // of entries
	Replicas int           // of each entry, in a cluster
}

// DefaultLimits are those of a hub where nothing else is given.
var DefaultLimits = Limits{Bytes: 4 << 30, Age: 7 * 24 * time.Hour, Replicas: 1}

// Serving describes a hub that is to be started.
type Serving struct {
	Dir    string // of its state, 0700
	Limits Limits
	Listen string // ADDRESS:PORT besides the socket, "" for none
	// Certificate and Key are the files of TLS there; without them the address is loopback.
	Certificate, Key string
	Cluster          *Address // the hub is there already
	// Log gets lines about trouble.
	Log func(text string)
}

// Page says what a page for browsers shows, where, and to whom. Package page makes it, which is in
// the program that knows hubs: a server of HTTP costs the start of others as much as a hub.
type Page struct {
	Bus       Bus            // the hub; nil: the detached runs of Runs
	Runs      *history.Store // of this machine
	Address   string         // to listen on
	Cert, Key string         // files; another address than loopback needs them
	TokenFile string         // keeps the token, for bookmarks and for Prometheus; "" = a new one each time
	Ready     func(address string)
}
