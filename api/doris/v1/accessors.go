package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// GetConditions returns the conditions of the status.
func (d *DorisCluster) GetConditions() []metav1.Condition { return d.Status.Conditions }

// SetConditions replaces the conditions of the status.
func (d *DorisCluster) SetConditions(c []metav1.Condition) { d.Status.Conditions = c }

// SetObservedGeneration records the generation that the status was computed from.
func (d *DorisCluster) SetObservedGeneration(g int64) { d.Status.ObservedGeneration = g }
