package cli

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"

	"github.com/urfave/cli/v2"

	"github.com/retcon-dev/retcon"
	"github.com/retcon-dev/retcon/mcp"
)

func (c *console) mcpCommand() *cli.Command {
	return &cli.Command{
		Name:        "mcp",
		Usage:       "offer the verbs as tools to agents",
		Category:    "doors",
		Description: "Examples:\n  retcon mcp serve",
		Subcommands: []*cli.Command{{
			Name:  "serve",
			Usage: "answer a client of the Model Context Protocol",
			Flags: []cli.Flag{
				&cli.StringFlag{Name: "http", Usage: "listen at `address`, a port of 127.0.0.1, not to stdin"},
				&cli.StringFlag{Name: "allow", Usage: "what clients may do: `capabilities` of read, fork, travel, signal and force", Value: "read,fork,travel,signal"},
				&cli.StringFlag{Name: "actor", Usage: "act as `name`, whatever the client says its name is"},
			},
			Description: `The client writes to stdin and reads from stdout, or speaks streamable HTTP to the
address that is printed, with the token that is printed beside it. The tools are
described in docs/mcp.md.

What moves something shows its plan first, and carries it out when the plan is
named and confirmed. Moves by clients count as moves by agents: ten an hour.

Examples:
  retcon mcp serve
  retcon mcp serve --allow read`,
			Action: func(ctx *cli.Context) error {
				o := mcp.Options{Open: c.openFor, Now: c.Now, Actor: ctx.String("actor"), Version: thisBuild().Version}
				var err error
				if o.Allow, err = mcp.ParseCapabilities(ctx.String("allow")); err != nil {
					return misuse("--allow: "+err.Error(), "retcon mcp serve --help")
				}
				c.work.columns = 0 // several calls at once have no progress to show
				if address := ctx.String("http"); address != "" {
					return c.listen(ctx.Context, mcp.New(o), address)
				}
				return mcp.New(o).Serve(ctx.Context, c.in, c.out)
			},
		}},
	}
}

// openFor opens the workspace on behalf of an agent.
func (c *console) openFor(ctx context.Context, actor string) (*retcon.Workspace, error) {
	return c.open(ctx, retcon.Options{Actor: actor, Env: c.Environ()})
}

// listen serves clients over HTTP, to this machine only.
func (c *console) listen(ctx context.Context, s *mcp.Server, address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		host, port = "", address
	}
	if host != "" && host != "127.0.0.1" && host != "localhost" {
		return misuse(fmt.Sprintf("--http %s: only 127.0.0.1 is listened at", name(address)), "retcon mcp serve --http 127.0.0.1:"+port)
	}
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		return fmt.Errorf("--http: %w", err)
	}
	token := rand.Text()
	if err := c.answer(listening{URL: fmt.Sprintf("http://%s/mcp", l.Addr()), Token: token}); err != nil {
		return err
	}
	return s.Listen(ctx, l, token)
}

// listening is where clients find the server.
type listening struct {
	URL   string `json:"url"`
	Token string `json:"token"`
}

func (l listening) Text(p *page) {
	p.printf("%s\nAuthorization: Bearer %s\n", l.URL, l.Token)
}
