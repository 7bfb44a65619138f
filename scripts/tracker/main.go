// Tracker is a small issue tracker for the quickstart: POST /tickets makes one,
// DELETE /tickets/N removes it, GET /tickets lists what there is. It listens on
// the loopback, prints its address, and ends when its standard input does.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
)

func main() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	var mu sync.Mutex
	next, open := 0, map[string]string{}
	http.HandleFunc("POST /tickets", func(w http.ResponseWriter, r *http.Request) {
		title, _ := io.ReadAll(io.LimitReader(r.Body, 1<<16)) // what has come so far will do
		mu.Lock()
		defer mu.Unlock()
		next++
		id := fmt.Sprint(next)
		open[id] = string(title)
		json.NewEncoder(w).Encode(map[string]string{"id": id})
	})
	http.HandleFunc("DELETE /tickets/{id}", func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		delete(open, r.PathValue("id")) // a second time is fine
		w.WriteHeader(http.StatusNoContent)
	})
	http.HandleFunc("GET /tickets", func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		json.NewEncoder(w).Encode(open)
	})
	fmt.Printf("http://%s\n", l.Addr())
	go http.Serve(l, nil)
	io.Copy(io.Discard, os.Stdin)
}
