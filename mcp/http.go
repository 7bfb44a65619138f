package mcp

import (
	"context"
	"crypto/subtle"
	"errors"
	"net"
	"net/http"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Listen answers clients over streamable HTTP at /mcp, until ctx is done. What
// still goes on then is interrupted, and waited for. The listener must be one of
// the loopback interface. Clients show the token as a bearer token.
func (s *Server) Listen(ctx context.Context, l net.Listener, token string) error {
	going, stop := context.WithCancel(ctx)
	defer stop()
	server := &http.Server{Handler: s.handler(s.offer(going), token), ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(going, func() { _ = server.Close() }) // those who still listen are sent away
	err := server.Serve(l)
	stop()
	s.turn.wait()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// idle is how long a client may say nothing before it has to begin anew.
const idle = time.Hour

func (s *Server) handler(o *offer, token string) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/mcp", sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return o.sdk },
		&sdk.StreamableHTTPOptions{SessionTimeout: idle, PropagateRequestCancellation: true}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !loopback(r.Host):
			http.Error(w, "wrong Host", http.StatusForbidden)
		case !sameOrigin(r):
			http.Error(w, "wrong Origin", http.StatusForbidden)
		case !authorized(r, token):
			w.Header().Set("WWW-Authenticate", `Bearer realm="retcon"`)
			http.Error(w, "the token is missing or wrong", http.StatusUnauthorized)
		default:
			mux.ServeHTTP(w, r)
		}
	})
}

// loopback tells that a Host names this machine to itself. A page elsewhere can
// let its own name point here, but not say another.
func loopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// sameOrigin tells that no page but one of this server's own asks. What is no
// browser sends no Origin.
func sameOrigin(r *http.Request) bool {
	origins := r.Header.Values("Origin")
	return len(origins) == 0 || len(origins) == 1 && origins[0] == "http://"+r.Host
}

func authorized(r *http.Request, token string) bool {
	shown, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return ok && token != "" && subtle.ConstantTimeCompare([]byte(shown), []byte(token)) == 1
}
