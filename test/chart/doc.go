// Package chart proves the Helm chart of the operator.
package chart
