// Rackctl gives orders to the rackd on this machine.
//
// Exit codes: 0 when it was done, 1 when it was refused or a task did not succeed, 2 for wrong use, 3 when rackd cannot
// be reached. The shell command ends with the exit code of the phone's command.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"phonerack/agent/phone"
	"phonerack/cmd/internal/given"
	"phonerack/cmd/internal/table"
	"phonerack/firmware/control"
	"phonerack/sync/wire"
)

const (
	exitRefused     = 1
	exitUsage       = 2
	exitUnreachable = 3
)

type commands struct {
	Socket string `help:"Socket of rackd." env:"RACKD_SOCKET" default:"/run/rackd/rackd.sock" placeholder:"PATH"`
	JSON   bool   `help:"Print results and refusals as JSON."`
	Lang   string `help:"Language of refusals: en or zh." enum:"en,zh" default:"en" env:"RACKCTL_LANG"`

	Phones      phonesCommand      `cmd:"" help:"List slots and phones."`
	Info        infoCommand        `cmd:"" help:"Show what a phone tells of itself and what is remembered of it."`
	Observe     observeCommand     `cmd:"" help:"Show what is on a phone's screen."`
	Tap         tapCommand         `cmd:"" help:"Touch an element, a text or a point."`
	LongPress   pressCommand       `cmd:"" help:"Touch an element, a text or a point for a second."`
	Swipe       swipeCommand       `cmd:"" help:"Move a finger over the screen."`
	Type        typeCommand        `cmd:"" help:"Type into the focused field."`
	Key         keyCommand         `cmd:"" help:"Press a key, such as back, home or enter."`
	Launch      launchCommand      `cmd:"" help:"Start an app."`
	Shell       shellCommand       `cmd:"" help:"Run a command on a phone; its exit code becomes that of rackctl."`
	Push        pushCommand        `cmd:"" help:"Copy a file to a phone."`
	Pull        pullCommand        `cmd:"" help:"Copy a file from a phone."`
	Hold        holdCommand        `cmd:"" help:"Keep a slot for yourself, keep it longer, or give it back."`
	Slots       slotsCommand       `cmd:"" help:"Tell how each slot is, why, and what to do."`
	Status      statusCommand      `cmd:"" help:"Tell how the controller is, and the slots in numbers."`
	Power       powerCommands      `cmd:"" help:"Switch the power of a slot's port, or of its whole hub."`
	Identify    identifyCommand    `cmd:"" help:"Show which rack this is by its light, and which phone by its screen."`
	Sign        signCommand        `cmd:"" help:"Have a free phone's screen show the address of the rack's page, and its QR code."`
	Ping        pingCommand        `cmd:"" help:"Tell that rackd is there."`
	Screenshot  screenshotCommand  `cmd:"" help:"Take a picture of a phone's screen."`
	Reboot      rebootCommand      `cmd:"" help:"Restart a phone, and wait until it can be used again."`
	Retry       retryCommand       `cmd:"" help:"Have recovery begin anew on a slot."`
	Forget      forgetCommand      `cmd:"" help:"Say that a slot is empty on purpose: its phone is not missed."`
	Quarantine  quarantineCommand  `cmd:"" help:"Leave a slot's phone alone for a time, or take it back."`
	Maintenance maintenanceCommand `cmd:"" help:"Say that hands are inside: nothing is switched or restarted that nobody asks for."`
	Link        linkCommands       `cmd:"" help:"Show the link to the cloud."`
	Reset       resetCommand       `cmd:"" name:"factory-reset" help:"Make the rack as it was delivered; on the board itself only."`
	ADBKey      keyCommands        `cmd:"" name:"adb-key" help:"Back up, bring back and replace the key that phones know this rack by."`
	Config      configCommands     `cmd:"" help:"Have rackd read its configuration anew."`
	Log         logCommand         `cmd:"" help:"Show the newest lines of rackd's log."`
	Helpers     helperCommands     `cmd:"" help:"Install and remove the helper apps of a phone."`
	Skill       skillCommands      `cmd:"" help:"List, register and check skills."`
	Task        taskCommands       `cmd:"" help:"Run and follow tasks."`
	Frame       frameCommands      `cmd:"" help:"Sign and check messages between rack and cloud."`
	Board       boardCommands      `cmd:"" help:"Check board files, and find out which USB port is which slot."`
	MCP         mcpCommand         `cmd:"" name:"mcp" help:"Serve one MCP client on standard input and output: skills, and the phones of this rack."`
	Actions     actionsCommand     `cmd:"" help:"List what rackd can be asked for, with schemas."`
}

// exitCode ends rackctl with a code and without words: everything was said.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// session is one run of rackctl.
type session struct {
	ctx            context.Context
	client         *control.Client
	json           bool
	lang           string
	stdin          io.Reader
	stdout, stderr io.Writer
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// words are what the help texts have to look up.
var words = kong.Vars{"keys": strings.Join(phone.Keys(), ", ")}

func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	var c commands
	parser := kong.Must(&c, kong.Name("rackctl"), kong.Description("Give orders to the rackd on this machine."), kong.Writers(stdout, stderr), words)
	parsed, err := parser.Parse(args)
	if err == nil {
		err = given.NoEmpty(parsed.Path)
	}
	if err != nil {
		fmt.Fprintf(stderr, "rackctl: %v; see rackctl --help\n", err)
		return exitUsage
	}
	s := &session{
		ctx: ctx, client: &control.Client{Socket: c.Socket}, json: c.JSON || c.Skill.Format == "json", lang: c.Lang,
		stdin: stdin, stdout: stdout, stderr: stderr,
	}
	return s.exit(parsed.Run(s))
}

// exit says what went wrong and chooses the exit code.
func (s *session) exit(err error) int {
	if err == nil {
		return 0
	}
	if code, ok := errors.AsType[exitCode](err); ok {
		return int(code)
	}
	if refusal, ok := errors.AsType[*wire.Refusal](err); ok {
		if s.json {
			s.print(map[string]any{"error": refusal})
		} else {
			sentence := refusal.Sentence(s.lang)
			fmt.Fprintln(s.stderr, sentence)
			if detail, ok := refusal.Args["detail"].(string); ok && !strings.Contains(sentence, detail) {
				fmt.Fprintf(s.stderr, "(%s)\n", table.Plain(detail))
			}
		}
		return exitRefused
	}
	fmt.Fprintln(s.stderr, "rackctl:", err)
	if errors.Is(err, control.ErrUnreachable) {
		fmt.Fprintln(s.stderr, "Check that rackd runs, that --socket names its socket, and that your user is in its group.")
		return exitUnreachable
	}
	return exitRefused
}

// call asks for an action and shows its result: as JSON if wanted, else through show.
func call[R any](s *session, name string, args any, show func(R) error) error {
	var result R
	if err := s.client.Call(s.ctx, name, args, &result); err != nil {
		return err
	}
	if s.json {
		return s.print(result)
	}
	return show(result)
}

func (s *session) print(v any) error {
	out := json.NewEncoder(s.stdout)
	out.SetIndent("", "  ")
	out.SetEscapeHTML(false)
	return out.Encode(v)
}

type actionsCommand struct{}

func (actionsCommand) Run(s *session) error {
	all, err := s.client.Definitions(s.ctx)
	if err != nil {
		return err
	}
	if s.json {
		return s.print(all)
	}
	t := table.New(s.stdout, "ACTION", "ROLE", "NEEDS", "TWICE", "WITHIN", "ARGUMENTS", "WHAT IT DOES")
	for _, d := range all {
		needs, twice := "", "no"
		switch {
		case d.NeedsLease:
			needs = "the slot"
		case d.NeedsQuiet:
			needs = "all slots on the power"
		}
		if d.Idempotent {
			twice = "as once"
		}
		t.Row(d.Name, string(d.Role), needs, twice, d.Timeout.String(), taken(d.Schema), d.Summary)
	}
	return t.Flush()
}

// taken names the arguments of a schema, the optional ones in brackets.
func taken(schema json.RawMessage) string {
	var s struct {
		Required   []string
		Properties map[string]json.RawMessage
	}
	if json.Unmarshal(schema, &s) != nil {
		return "?"
	}
	var must, may []string
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if slices.Contains(s.Required, name) {
			must = append(must, name)
		} else {
			may = append(may, "["+name+"]")
		}
	}
	return strings.Join(append(must, may...), " ")
}
