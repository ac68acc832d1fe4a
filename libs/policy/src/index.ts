export { type DockerAllowances, type DockerPlan, planDocker } from './execution/docker.ts';
export { WORKSPACE_PATH } from './execution/folders.ts';
export { type HostAllowances, type HostPlan, planHost } from './execution/host.ts';
export { type SeccompProfile, type SeccompRule, sessionSeccompProfile } from './execution/seccomp.ts';
export type { HostBounds } from './limits.ts';
