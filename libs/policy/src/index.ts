export {
  type BubblewrapPlan,
  bubblewrapArguments,
  FILTER_DESCRIPTOR,
  type HostRoot,
  PROGRAM_FOLDERS,
  planBubblewrap,
} from './execution/bubblewrap.ts';
export { type DockerAllowances, type DockerPlan, planDocker } from './execution/docker.ts';
export { WORKSPACE_PATH } from './execution/folders.ts';
export { type HostAllowances, type HostPlan, planHost } from './execution/host.ts';
export { type SeccompProfile, type SeccompRule, sessionSeccompProfile } from './execution/seccomp.ts';
export { compileSeccomp } from './execution/seccomp-filter.ts';
export { isMadeHere, SESSION_IMAGES } from './execution/session-images.ts';
export type { HostBounds } from './limits.ts';
export {
  compileRedaction,
  createRedactor,
  type RedactedText,
  type Redaction,
  type RedactionOptions,
  validateRedaction,
} from './redaction/compile.ts';
export { REDACTION_CONTEXT_BYTES, type RedactionBlock, type Redactor } from './redaction/redactor.ts';
export { type RedactionWarning, unmaskedSecrets } from './redaction/secrets/known-secrets.ts';
