package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/retcon-dev/retcon/scripts/bench/internal/bench"
)

// realClients are the clients that can be run, as scripts/e2e-agents runs them.
// A place is its address of the model and its home.
var realClients = map[string]struct {
	argv     []string
	env      func(url, home string) []string
	settings string // below the home; "" for none
	text     string
}{
	"claude": {
		argv: []string{"claude", "--dangerously-skip-permissions", "-p"},
		env: func(url, _ string) []string {
			return []string{"ANTHROPIC_BASE_URL=" + url, "ANTHROPIC_API_KEY=x", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1", "IS_SANDBOX=1"}
		},
	},
	"codex": {
		argv:     []string{"codex", "exec", "--dangerously-bypass-approvals-and-sandbox"},
		env:      func(_, home string) []string { return []string{"CODEX_HOME=" + home + "/.codex", "FAKE_KEY=x"} },
		settings: ".codex/config.toml",
		text: "model = \"gpt-5.5\"\nmodel_provider = \"fake\"\n[model_providers.fake]\nname = \"fake\"\nbase_url = \"{{url}}/v1\"\n" +
			"wire_api = \"responses\"\nenv_key = \"FAKE_KEY\"\n",
	},
	"opencode": {
		argv: []string{"opencode", "run", "--auto"},
		env: func(_, _ string) []string {
			return []string{"OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_AUTOUPDATE=1"}
		},
		settings: ".config/opencode/opencode.json",
		text: `{"model": "fake/fake-model", "provider": {"fake": {"npm": "@ai-sdk/openai-compatible", "name": "fake",
 "options": {"baseURL": "{{url}}/v1", "apiKey": "x"}, "models": {"fake-model": {"name": "fake-model"}}}}}`,
	},
	"gemini": {
		argv:     []string{"gemini", "-m", "gemini-2.5-pro", "--yolo", "--skip-trust", "-p"},
		env:      func(url, _ string) []string { return []string{"GOOGLE_GEMINI_BASE_URL=" + url, "GEMINI_API_KEY=x"} },
		settings: ".gemini/settings.json",
		text:     `{"security": {"auth": {"selectedType": "gemini-api-key"}}}`,
	},
}

// prompt is one that the scripts of scripts/e2e know: three tools.
const prompt = "STEPS PROMPT: take three steps"

// realAgent is a whole run of a real client.
func (h *hooks) realAgent(ctx context.Context) error {
	name, goal := h.f.Case("agent run ("+h.client+")"), h.f.Goal(1.15, 20000)
	const rival = "without hooks"
	if !h.Wants(name) {
		return nil
	}
	cache := os.Getenv("E2E_CACHE")
	if cache == "" {
		home, _ := os.UserHomeDir() // "": it is not there then
		cache = filepath.Join(home, ".cache", "retcon-e2e")
	}
	bin := filepath.Join(cache, h.client, "node_modules", ".bin")
	if _, err := os.Stat(filepath.Join(bin, h.client)); err != nil {
		return h.Skip(name, rival, goal, h.client+" is not installed in "+cache+": scripts/e2e-agents "+h.client)
	}
	with, err := h.seat(ctx, "with", h.ours, bin)
	if err != nil {
		return h.Report.Add(h.Report.Row(name, rival, goal).Fail(err))
	}
	defer with.close()
	without, err := h.seat(ctx, "without", h.theirs, bin)
	if err != nil {
		return h.Report.Add(h.Report.Row(name, rival, goal).Fail(err))
	}
	defer without.close()
	add := bench.Command{Dir: h.ours, Env: with.env, Args: []string{h.bin("retcon"), "agents", "add", h.client, "--trust"}}
	if _, _, err := add.Run(ctx); err != nil {
		return err
	}
	side := func(s *seat) bench.Side {
		return bench.Side{Name: rival, Prepare: s.clear, Run: func(ctx context.Context) (bench.Usage, error) {
			_, u, err := bench.Command{Dir: s.dir, Env: s.env, Args: s.argv}.Run(ctx)
			return u, err
		}, Check: s.done}
	}
	_, err = h.race(ctx, name, goal, side(with), side(without))
	return err
}

// seat is where a client works: its home, its repository, and its model.
type seat struct {
	dir   string
	env   []string
	argv  []string
	model *exec.Cmd
}

func (h *hooks) seat(ctx context.Context, name, dir, bin string) (s *seat, err error) {
	c := realClients[h.client]
	home, err := h.Folder(name)
	if err != nil {
		return nil, err
	}
	s = &seat{dir: dir}
	script, err := h.slowed(filepath.Join(h.bins, "scripts", h.client+".json"), filepath.Join(home, "script.json"))
	if err != nil {
		return nil, err
	}
	s.model = exec.CommandContext(ctx, filepath.Join(h.bins, "fakemodel"), "-script", script, "-log", filepath.Join(home, "requests.jsonl"), "-var", "repo="+dir)
	out, err := s.model.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.model.Start(); err != nil {
		return nil, err
	}
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	url = strings.TrimSpace(url)
	if c.settings != "" {
		file := filepath.Join(home, c.settings)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return nil, errors.Join(err, s.close())
		}
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(c.text, "{{url}}", url)), 0o600); err != nil {
			return nil, errors.Join(err, s.close())
		}
	}
	s.env = append([]string{"PATH=" + bin + ":" + filepath.Join(h.bins, "installed") + ":" + os.Getenv("PATH"), "HOME=" + home, "TERM=dumb"}, c.env(url, home)...)
	s.argv = append(append([]string{filepath.Join(bin, h.client)}, c.argv[1:]...), prompt)
	return s, nil
}

// slowed writes a script whose answers take as long as is asked for.
func (h *hooks) slowed(from, to string) (string, error) {
	text, err := os.ReadFile(from)
	if err != nil {
		return "", err
	}
	var script any
	if err := json.Unmarshal(text, &script); err != nil {
		return "", fmt.Errorf("%s: %w", from, err)
	}
	slow(script, h.latency.Milliseconds())
	if text, err = json.Marshal(script); err != nil {
		return "", err
	}
	return to, os.WriteFile(to, text, 0o600)
}

// slow sets the delay of every turn.
func slow(v any, ms int64) {
	switch v := v.(type) {
	case map[string]any:
		for key, in := range v {
			if turns, ok := in.([]any); ok && key == "turns" {
				for _, t := range turns {
					if t, ok := t.(map[string]any); ok {
						t["delay_ms"] = ms
					}
				}
			}
			slow(in, ms)
		}
	case []any:
		for _, in := range v {
			slow(in, ms)
		}
	}
}

// clear removes what the tools of the prompt leave.
func (s *seat) clear(int) error {
	for _, name := range []string{"step1.txt", "step2.txt", "step3.txt"} {
		if err := os.RemoveAll(filepath.Join(s.dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// done checks that the client has run the tools.
func (s *seat) done() error {
	var err error
	for _, name := range []string{"step2.txt", "step3.txt"} {
		if _, serr := os.Stat(filepath.Join(s.dir, name)); serr != nil {
			err = errors.Join(err, serr)
		}
	}
	return err
}

func (s *seat) close() error {
	err := s.model.Process.Kill()
	_ = s.model.Wait() // it was killed
	return err
}
