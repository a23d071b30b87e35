// Rackcloud is the cloud side of phonerack in one program, and the tool that gives it orders.
//
// Exit codes: 0 when it was done, 1 when it was refused, 2 for wrong use, 3 when rackcloud cannot be reached.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"phonerack/cmd/internal/given"
	"phonerack/sync/wire"
)

const (
	exitRefused     = 1
	exitUsage       = 2
	exitUnreachable = 3
)

type commands struct {
	JSON   bool   `help:"Print results and refusals as JSON."`
	Lang   string `help:"Language of refusals: en or zh." enum:"en,zh" default:"en"`
	Admin  string `help:"Address of the admin API." default:"http://127.0.0.1:8471" placeholder:"URL"`
	Token  string `help:"File of mode 0600 with the admin token, for another address than this machine's." placeholder:"FILE"`
	CA     string `help:"File with the authority of an https address; the system's without it." placeholder:"FILE"`
	Tenant string `help:"Tenant to act in." default:"default"`

	Serve        serveCommand         `cmd:"" help:"Run the cloud."`
	Host         hostCommands         `cmd:"" help:"Enrol, list, rotate and revoke racks."`
	Provider     providerCommands     `cmd:"" help:"Provider profiles of the planner."`
	Task         taskCommands         `cmd:"" help:"Submit tasks and follow them."`
	Command      orderCommands        `cmd:"" help:"Send commands to racks and follow them."`
	Decisions    decisionsCommand     `cmd:"" help:"Show what the planner decided for a task."`
	Events       eventsCommand        `cmd:"" help:"Show what racks told by themselves."`
	Audit        auditCommand         `cmd:"" help:"Show who did what."`
	Usage        usageCommand         `cmd:"" help:"Show what was spent."`
	Skill        skillCommands        `cmd:"" help:"Publish skills, list and remove them."`
	Subscription subscriptionCommands `cmd:"" help:"Say which racks and agents have which skills."`
	Catalog      catalogCommands      `cmd:"" help:"What a rack is entitled to, and the keys that sign it."`
	Broker       brokerCommands       `cmd:"" help:"Files for an external broker."`
	Key          keyCommands          `cmd:"" help:"The key file of rackcloud's machine."`
	NewToken     tokenCommand         `cmd:"" name:"token" help:"Make an admin token for other machines."`
	Backup       backupCommand        `cmd:"" help:"Copy the database while it is used."`
}

// exitCode ends rackcloud with a code and without words: everything was said.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// session is one run of an operator's command.
type session struct {
	ctx            context.Context
	client         *client
	json           bool
	lang           string
	stdin          io.Reader
	stdout, stderr io.Writer
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	var c commands
	parser := kong.Must(&c, kong.Name("rackcloud"), kong.Description("The cloud side of phonerack, and the tool that gives it orders."),
		kong.Writers(stdout, stderr), kong.Configuration(serveConfig))
	parsed, err := parser.Parse(args)
	if err == nil {
		err = given.NoEmpty(parsed.Path)
	}
	if err != nil {
		fmt.Fprintf(stderr, "rackcloud: %v; see rackcloud --help\n", err)
		return exitUsage
	}
	s := &session{ctx: ctx, json: c.JSON, lang: c.Lang, stdin: stdin, stdout: stdout, stderr: stderr}
	s.client, err = newClient(c.Admin, c.Token, c.CA, c.Tenant)
	if err == nil {
		err = parsed.Run(s)
	}
	return s.exit(err)
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
			_ = s.print(map[string]any{"error": refusal}) // stdout is gone: the exit code tells
		} else {
			fmt.Fprintln(s.stderr, refusal.Sentence(s.lang))
		}
		return exitRefused
	}
	fmt.Fprintln(s.stderr, "rackcloud:", err)
	if errors.Is(err, errUnreachable) {
		fmt.Fprintln(s.stderr, "Check that rackcloud serve runs there, and that --admin names its admin address.")
		return exitUnreachable
	}
	if errors.Is(err, errUsage) {
		return exitUsage
	}
	return exitRefused
}

func (s *session) print(v any) error {
	out := json.NewEncoder(s.stdout)
	out.SetIndent("", "  ")
	out.SetEscapeHTML(false)
	return out.Encode(v)
}

// show prints a result: as JSON if wanted, else through text.
func show[T any](s *session, v T, err error, text func(T) error) error {
	if err != nil {
		return err
	}
	if s.json {
		return s.print(v)
	}
	return text(v)
}
