// Package meta holds the words that every kind served by Fairlead shares:
// condition types, reasons and annotation keys.
//
// Conditions follow the Kubernetes API conventions: they are observations, they
// carry the generation they were computed from, and their messages are stable
// (no times, names sorted), so that an unchanged world writes no status.
// Reconciling and Stalled are the two "abnormal" conditions that kstatus and
// tools built on it read: they are present and True only while they apply.
package meta
