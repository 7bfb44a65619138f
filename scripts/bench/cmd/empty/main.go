// Command empty does nothing: so much takes any process.
package main

func main() {}
