export { type DockerAllowances, type DockerPlan, planDocker, WORKSPACE_PATH } from './execution/docker.ts';
export { type SeccompProfile, type SeccompRule, sessionSeccompProfile } from './execution/seccomp.ts';
export type { HostBounds } from './limits.ts';
