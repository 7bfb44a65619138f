package agent

// Session is a conversation with a client, as the client names it.
type Session struct{ Agent, Session string }

// Sessions are the conversations that a process was started in, as far as its
// environment tells. A variable is handed on to whatever is started, so that it
// may name a conversation that is long over.
func Sessions(getenv func(string) string) (all []Session) {
	for _, c := range clients() {
		if c.variable == "" {
			continue
		}
		if id := getenv(c.variable); id != "" {
			all = append(all, Session{Agent: c.Name, Session: id})
		}
	}
	return all
}
