// Package alerts holds the alert rules of config/monitoring to series that fire them
// and series that do not. It is a module of its own so that Prometheus is none of the
// operator's dependencies.
package alerts
