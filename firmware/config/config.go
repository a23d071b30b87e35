package config

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

	"phonerack/agent/mcp"
	"phonerack/agent/mcp/client"
	"phonerack/agent/planner/script"
	"phonerack/agent/runner"
	"phonerack/agent/skill/folder"
	"phonerack/agent/skill/registry"
	"phonerack/firmware/health"
	"phonerack/hal/board"
	"phonerack/hal/watchdog"
	"phonerack/sync/wire"
)

//go:embed testdata/example.toml
var example string

// Example is a commented configuration with every key.
func Example() string { return example }

const maxFile = 1 << 20 // bytes

// Config is a configuration that has passed every check. Its paths are absolute.
type Config struct {
	Rack    Rack     `toml:"rack"`
	Planner Planner  `toml:"planner"`
	Cloud   Cloud    `toml:"cloud"`
	Skills  Skills   `toml:"skills"`
	Helpers Helpers  `toml:"helpers"`
	USB     USB      `toml:"usb"`
	Streams []Stream `toml:"stream"`
	Log     Log      `toml:"log"`
	Control Control  `toml:"control"`
	MCP     MCP      `toml:"mcp"`
	Page    Page     `toml:"page"`
	Metrics Metrics  `toml:"metrics"`
	MDNS    MDNS     `toml:"mdns"`

	Health   health.Config `toml:"health"`
	Watchdog Watchdog      `toml:"watchdog"`

	// Board is the board file; nil without USB.
	Board *board.Board `toml:"-"`
	// Bundle is the identity of the cloud; zero without one.
	Bundle wire.Bundle `toml:"-"`
	// Unenrolled says that a factory reset has taken the identity, and nobody has put another in its place.
	Unenrolled bool `toml:"-"`
	// MCPTokens are those of MCP.TokenFile; zero without one.
	MCPTokens mcp.Tokens `toml:"-"`
	// Scripted is the script planner with its rules; nil with another transport.
	Scripted *script.Rules `toml:"-"`
}

// Rack says which rack this is and where it keeps what it writes.
type Rack struct {
	ID      string `toml:"id"`
	Board   string `toml:"board"`   // path of the board file
	State   string `toml:"state"`   // folder that outlives a restart
	Runtime string `toml:"runtime"` // folder that need not
}

// Planner says who decides the next step of a task.
type Planner struct {
	Transport string `toml:"transport"` // "script": rules on this rack; "cloud": the cloud's planner proxy; "direct": a provider
	Rules     string `toml:"rules"`     // file of rules, or folder of such files; "" for those that rackd ships with

	Pictures runner.Pictures `toml:"pictures"` // which screens it is sent a picture of

	Direct Provider `toml:"direct"` // of the transport "direct"
}

// Transports of a planner.
const (
	Script  = "script"
	ByCloud = "cloud"
	Direct  = "direct"
)

// Cloud says how the cloud is reached. Without an identity the rack is on its own.
type Cloud struct {
	Identity string `toml:"identity"` // the bundle of the enrolment, a file of mode 0600; "" for none
	Broker   string `toml:"broker"`   // in place of the bundle's, such as "ssl://cloud.example:8883"
	Proxy    string `toml:"proxy"`    // http://, https:// or socks5://; "" for none
}

// Provider says how a provider of models is asked directly.
type Provider struct {
	Provider string         `toml:"provider"` // "anthropic", "openai" or "openai-responses"
	Model    string         `toml:"model"`
	BaseURL  string         `toml:"base_url"` // "" for the provider's own
	KeyFile  string         `toml:"key_file"` // a file of mode 0600; "" for a provider without a key
	Timeout  Duration       `toml:"timeout"`
	Options  map[string]any `toml:"options"` // as docs/planner.md lists them
}

// Skills says whether tasks can use skills, and where Agent Skills lie.
type Skills struct {
	Enabled bool `toml:"enabled"` // false leaves the rack's own tools only
	// AgentSkillsPaths are folders between commas; "" is folder.DefaultPath. The
	// environment variable folder.PathsVariable takes its place.
	AgentSkillsPaths     string            `toml:"agent_skills_paths"`
	AgentSkillsMode      folder.Mode       `toml:"agent_skills_mode"`      // of files that depart from the standard
	AgentSkillsConflicts registry.Strategy `toml:"agent_skills_conflicts"` // of names that are taken
	PollInterval         Duration          `toml:"poll_interval"`          // between two looks
	Platform             Platform          `toml:"platform"`               // where subscriptions are; without a URL it is the cloud
	Servers              []MCPServer       `toml:"server"`                 // of MCP, whose tools skills may use

	// Paths are the folders to look into.
	Paths folder.Paths `toml:"-"`
	// Allowed are the servers with their tokens.
	Allowed []client.Server `toml:"-"`
}

// MCPServer is a server of the Model Context Protocol that skills may name. Either Command or URL is set.
type MCPServer struct {
	Name      string            `toml:"name"`       // as skills call it
	Command   []string          `toml:"command"`    // absolute path of its program, and arguments; no shell reads them
	Env       map[string]string `toml:"env"`        // of the program, beside PATH and LANG: it gets nothing of rackd's
	URL       string            `toml:"url"`        // https://, or http:// on this machine
	TokenFile string            `toml:"token_file"` // sent to the URL as a bearer: a file of mode 0600; "" for none
}

// Platform says where a platform of skills is that is reached over HTTP in place of the cloud.
type Platform struct {
	URL            string `toml:"url"`             // https://host/path; "" for the cloud
	CredentialFile string `toml:"credential_file"` // a file of mode 0600, read at each request
	CAFile         string `toml:"ca_file"`         // the one authority that may vouch for the host; "" for those of the system
	Keys           string `toml:"keys"`            // that sign manifests, as "id:base64" with one blank between two
	Rack           string `toml:"rack"`            // the id of this rack there; "" for that of the identity, else rack.id
	Subscription   string `toml:"subscription"`    // that is asked for; "" for what the credential says
	Since          bool   `toml:"since"`           // the platform can tell changes only

	// Authorities are those of CAFile; nil for the system's.
	Authorities *x509.CertPool `toml:"-"`
	// Trusted are the keys by id.
	Trusted map[string]ed25519.PublicKey `toml:"-"`
}

// Credential reads what the platform is shown.
func (p Platform) Credential() (string, error) {
	raw, err := Secret(p.CredentialFile, maxKeyFile)
	if err != nil {
		return "", err
	}
	word := string(bytes.TrimSpace(raw))
	if word == "" || strings.ContainsFunc(word, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("%s is no credential: write it as one line of printable ASCII without blanks", p.CredentialFile)
	}
	return word, nil
}

// Helpers says where the helper apps lie that may be installed on phones.
type Helpers struct {
	Folder string `toml:"folder"` // as `make helpers` fills it; "" if none can be installed
}

// USB says whether phones are looked for on USB.
type USB struct {
	Enabled bool   `toml:"enabled"`
	Sysfs   string `toml:"sysfs"` // where sysfs is mounted
}

// Stream is a development phone whose ADB is a byte stream instead of USB.
type Stream struct {
	Slot    int    `toml:"slot"`
	Address string `toml:"address"` // "unix:/path" or "tcp:127.0.0.1:port"
}

// Network splits the address for net.Dial.
func (s Stream) Network() (network, address string) {
	network, address, _ = strings.Cut(s.Address, ":")
	return network, address
}

// Log says what is logged to standard error.
type Log struct {
	Level  slog.Level `toml:"level"`
	Format string     `toml:"format"` // "text" or "json"
}

// Control says who may give orders on this board.
type Control struct {
	Socket  string   `toml:"socket"`   // path of the unix socket, below the runtime folder
	Group   string   `toml:"group"`    // may use the socket besides the user of rackd; "" for nobody
	MaxHold Duration `toml:"max_hold"` // longest hold of a slot
}

// Watchdog says which hardware watchdog resets a board whose rackd makes no progress.
type Watchdog struct {
	Device  string   `toml:"device"`  // usually /dev/watchdog0; "" for none
	Timeout Duration `toml:"timeout"` // of the hardware; the driver may choose a shorter one
}

// MCP says whether clients of the Model Context Protocol are served.
type MCP struct {
	Enabled     bool     `toml:"enabled"`
	Listen      string   `toml:"listen"`      // loopback address of HTTP, such as "127.0.0.1:8472"; "" for none
	TokenFile   string   `toml:"token_file"`  // who may use HTTP: a file of mode 0600
	Permissions []string `toml:"permissions"` // of mcp.Permissions, that clients have
}

// Duration is a time.Duration written as in "15m".
type Duration = health.Duration

func defaults() Config {
	return Config{
		Rack:    Rack{State: "/var/lib/rackd", Runtime: "/run/rackd"},
		Planner: Planner{Transport: Script, Pictures: runner.PicturesNeeded},
		Skills:  Skills{Enabled: true, AgentSkillsMode: folder.Lenient, AgentSkillsConflicts: registry.SkipConflicts, PollInterval: Duration(15 * time.Minute)},
		USB:     USB{Enabled: true, Sysfs: "/sys"},
		Log:     Log{Format: "text"},
		Control: Control{MaxHold: Duration(15 * time.Minute)},
		MCP:     MCP{Enabled: true},
		MDNS:    MDNS{Enabled: true},

		Health:   health.Defaults(),
		Watchdog: Watchdog{Timeout: Duration(watchdog.DefaultTimeout)},
	}
}

// Load reads and checks a configuration with its board file. The error joins every fault that was found: each is a
// board.Fault, or says why a file could not be read.
func Load(path string) (*Config, error) {
	data, err := read(path)
	if err != nil {
		return nil, err
	}
	c := defaults()
	decoder := toml.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&c); err != nil {
		return nil, syntaxFaults(path, err)
	}
	base, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("find the folder of %s: %w", path, err)
	}
	c.resolve(base)
	check := checker{file: path, at: board.Positions(data)}
	check.all(&c)
	if err := errors.Join(check.faults...); err != nil {
		return nil, err
	}
	return &c, nil
}

func read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	if len(data) > maxFile {
		return nil, board.Fault{File: path, Text: fmt.Sprintf("the file is larger than %d bytes: is it a configuration?", maxFile)}
	}
	return board.Text(path, data)
}

// Files are the files and folders that the configuration names and rackd only reads, apart from the identity.
func (c *Config) Files() (all []string) {
	for _, p := range []string{
		c.Rack.Board, c.Planner.Rules, c.Planner.Direct.KeyFile, c.Helpers.Folder, c.MCP.TokenFile, c.Page.PINFile, c.Metrics.TokenFile,
		c.Skills.Platform.CredentialFile, c.Skills.Platform.CAFile,
	} {
		if p != "" {
			all = append(all, p)
		}
	}
	for _, s := range c.Skills.Servers {
		if s.TokenFile != "" {
			all = append(all, s.TokenFile)
		}
	}
	if !c.Skills.Paths.Default {
		all = append(all, c.Skills.Paths.Folders...)
	}
	return all
}

// resolve makes the paths absolute and fills in those that follow from others.
func (c *Config) resolve(base string) {
	if c.Control.Socket == "" {
		c.Control.Socket = filepath.Join(c.Rack.Runtime, "rackd.sock")
	}
	for _, p := range []*string{&c.Rack.Board, &c.Rack.State, &c.Rack.Runtime, &c.Planner.Rules, &c.Planner.Direct.KeyFile, &c.Cloud.Identity, &c.Helpers.Folder, &c.USB.Sysfs, &c.Control.Socket, &c.MCP.TokenFile, &c.Page.PINFile, &c.Metrics.TokenFile, &c.Skills.Platform.CredentialFile, &c.Skills.Platform.CAFile, &c.Watchdog.Device} {
		if *p != "" && !filepath.IsAbs(*p) {
			*p = filepath.Join(base, *p)
		}
	}
	paths, set := os.LookupEnv(folder.PathsVariable)
	if !set {
		paths = c.Skills.AgentSkillsPaths
	}
	home, _ := os.UserHomeDir() // none is fine: a path that needs it is told
	c.Skills.Paths = folder.ParsePaths(paths, home, base)
	for i := range c.Skills.Servers {
		if f := &c.Skills.Servers[i].TokenFile; *f != "" && !filepath.IsAbs(*f) {
			*f = filepath.Join(base, *f)
		}
	}
	for i := range c.Streams {
		if p, ok := strings.CutPrefix(c.Streams[i].Address, "unix:"); ok && p != "" && !filepath.IsAbs(p) {
			c.Streams[i].Address = "unix:" + filepath.Join(base, p)
		}
	}
}
