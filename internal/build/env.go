package build

import (
	corev1 "k8s.io/api/core/v1"
)

// MergeEnv joins the variables of the operator with those of the user, who wins
// where both name one. Names are unique in the result. The operator's variables
// come first, so that the user's may refer to them as $(NAME); where the user
// names one twice, the last counts, as it does in Kubernetes.
func MergeEnv(ours, users []corev1.EnvVar) []corev1.EnvVar {
	last := map[string]int{}
	for i, v := range users {
		last[v.Name] = i
	}
	merged := make([]corev1.EnvVar, 0, len(ours)+len(users))
	for _, v := range ours {
		if _, taken := last[v.Name]; !taken {
			merged = append(merged, v)
		}
	}
	for i, v := range users {
		if last[v.Name] == i {
			merged = append(merged, *v.DeepCopy())
		}
	}
	return merged
}
