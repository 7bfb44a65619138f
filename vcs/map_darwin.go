package vcs

const mapPopulate = 0
