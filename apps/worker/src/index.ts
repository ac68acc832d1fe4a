export { ADMIT_EVERYTHING, type Admission, type AdmissionInput, type Verdict } from './admission/admission.ts';
export { ConfigError, readConfig, type WorkerConfig } from './config/config.ts';
export type { HostServices } from './run/host-services.ts';
export { openBubblewrap } from './sandbox/bubblewrap/bubblewrap-enclosure.ts';
export { openCodex } from './sandbox/codex/codex-enclosure.ts';
export { createDockerSandboxes } from './sandbox/docker/create-docker-sandboxes.ts';
export type { DockerSandboxesOptions } from './sandbox/docker/docker-sandboxes.ts';
export { Engine } from './sandbox/docker/engine.ts';
export { ensureFullNetwork } from './sandbox/docker/full-network.ts';
export { readLogin } from './sandbox/docker/registry-logins.ts';
export { createHostSandboxes, type HostSandboxesOptions } from './sandbox/host/host-sandboxes.ts';
export { KubernetesSandboxes, type KubernetesSandboxesOptions } from './sandbox/kubernetes/kubernetes-sandboxes.ts';
export {
  type FoundSandbox,
  type KeeperLink,
  MissingImage,
  type Sandbox,
  type SandboxDeath,
  type Sandboxes,
  type SessionRef,
} from './sandbox/sandbox.ts';
export { startUpkeep } from './upkeep/upkeep.ts';
export { watchHosts } from './upkeep/watch-hosts.ts';
export { createWorker, type Worker } from './worker.ts';
