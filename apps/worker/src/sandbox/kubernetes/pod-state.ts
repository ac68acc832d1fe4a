import { BlockList, isIP, isIPv6 } from 'node:net';
import { SHELL_CONTAINER } from '@shellfleet/policy';
import type { SandboxDeath } from '../sandbox.ts';
import type { ContainerStatus, Pod } from './pod-schema.ts';

export type PodState =
  /** The shell's container has not begun. `waitsFor`: the words of the scheduler or the kubelet, if there are any. */
  | { type: 'pending'; waitsFor: string | undefined }
  | { type: 'running'; address: string }
  /** The kubelet cannot start the Pod, and will not be able to later. */
  | { type: 'refused'; for: 'image' | 'container'; image: string; words: string }
  /** The node did not accept the Pod, of which nothing has begun. Another one may be accepted. */
  | { type: 'rejected'; words: string }
  | { type: 'dead'; death: SandboxDeath };

/** Reasons for which a kubelet has no image. It tries again, but a session is told at once. */
const NO_IMAGE = new Set([
  ...['ErrImagePull', 'ImagePullBackOff', 'InvalidImageName', 'ErrImageNeverPull', 'ImageInspectError'],
  ...['RegistryUnavailable', 'SignatureValidationFailed'],
]);
const NO_CONTAINER = new Set(['CreateContainerConfigError', 'CreateContainerError', 'RunContainerError']);
/** Reasons for which a runtime could not begin a container, of which the kubelet says that it has ended. */
const NEVER_BEGUN = new Set(['StartError', 'ContainerCannotRun']);
/** Exit code of a process that was killed by SIGKILL. */
const KILLED = 137;
const MOST_LIKELY_MEMORY =
  'that is most likely, since its container was killed (exit code 137) and the cluster names no other reason';
/** Words of a runtime that is slow. The kubelet's next attempt can succeed. */
const PASSES = /deadline exceeded|is reserved for/i;
/** Words of an eviction for the storage of the Pod or of its node. */
const STORAGE = /ephemeral(?:-| local )storage|EmptyDir volume/i;
const MOST_WORDS = 500;
/** Addresses that no Pod has for others: where they lead depends on who dials them. */
const NO_PODS = new BlockList();
NO_PODS.addSubnet('0.0.0.0', 8, 'ipv4');
NO_PODS.addSubnet('127.0.0.0', 8, 'ipv4');
NO_PODS.addSubnet('169.254.0.0', 16, 'ipv4');
NO_PODS.addSubnet('::', 127, 'ipv6');
NO_PODS.addSubnet('fe80::', 10, 'ipv6');

/** Returns the state of a Pod that is there. */
export function readPodState(pod: Pod): PodState {
  const { status } = pod;
  const shell = shellOf(pod);
  if (isOver(pod) || shell?.state.terminated !== undefined) return readEnd(pod);
  if (shell?.state.running !== undefined && status.podIP !== undefined) {
    if (isDialled(status.podIP)) return { type: 'running', address: status.podIP };
    return { type: 'pending', waitsFor: join('its Pod has no address that can be dialled', status.podIP) };
  }
  return findRefusal(pod) ?? { type: 'pending', waitsFor: waitsFor(pod) };
}

/** Tells whether a worker may dial what the API server names: an address, and not one of the worker's machine. */
function isDialled(address: string): boolean {
  if (isIP(address) === 0 || address.includes('%')) return false;
  return !NO_PODS.check(address, isIPv6(address) ? 'ipv6' : 'ipv4');
}

/** Tells whether the kubelet has ended a Pod, and told why. */
export const isOver = ({ status: { phase } }: Pod): boolean => phase === 'Failed' || phase === 'Succeeded';

/** Returns how a Pod ended that is over, or will have ended that something outside ends. */
export function readDeath(pod: Pod): SandboxDeath {
  const { status, metadata, spec } = pod;
  const terminated = shellOf(pod)?.state.terminated;
  const exitCode = terminated?.exitCode ?? null;
  if (terminated?.reason === 'OOMKilled') return { reason: 'oom', exitCode };
  const node = spec.nodeName === undefined ? 'its node' : `the node ${spec.nodeName}`;
  const killed = (what: string, words = '') => ({ reason: 'killed' as const, exitCode, detail: join(what, words) });
  const disruption = disruptionOf(pod);
  const isEvicted = disruption?.reason === 'TerminationByKubelet';
  if (status.reason === 'Evicted' || isEvicted) {
    const words = status.message === '' ? (disruption?.message ?? '') : status.message;
    const detail = join(`${node} evicted its Pod`, words);
    return { reason: STORAGE.test(words) ? 'disk' : 'killed', exitCode, detail };
  }
  if (status.reason === 'DeadlineExceeded') return killed('its Pod reached the age at which the kubelet ends it');
  if (disruption !== undefined) return killed(describeDisruption(disruption.reason, node), disruption.message);
  if (metadata.deletionTimestamp !== undefined) return { reason: 'removed', exitCode };
  // Such as a node that shuts down.
  if (status.reason !== '') return killed(`${node} ended its Pod (${status.reason})`, status.message);
  // containerd reports a kill for memory so when its event comes late. A kubelet has a reason for its own kills, and
  // nothing inside the container can kill its first process.
  if (exitCode === KILLED && terminated?.reason === 'Error')
    return { reason: 'oom', exitCode, detail: MOST_LIKELY_MEMORY };
  return { reason: 'exited', exitCode };
}

function readEnd(pod: Pod): PodState {
  const { reason, message } = pod.status;
  const begun = [...pod.status.initContainerStatuses, ...pod.status.containerStatuses].filter(hasBegun);
  if (isOver(pod) && begun.length === 0 && reason !== '' && reason !== 'DeadlineExceeded')
    return { type: 'rejected', words: join(`its node did not accept its Pod (${reason})`, message) };
  const failed = pod.status.initContainerStatuses.find(({ state }) => (state.terminated?.exitCode ?? 0) !== 0);
  const shell = shellOf(pod);
  if (failed !== undefined && (shell === undefined || !hasBegun(shell)) && reason === '')
    return refuse(pod, 'container', failed, describeFailure(failed));
  if (shell !== undefined && reason === '' && NEVER_BEGUN.has(shell.state.terminated?.reason ?? ''))
    return refuse(pod, 'container', shell, describeFailure(shell));
  return { type: 'dead', death: readDeath(pod) };
}

/** Returns how a container failed that has ended, with the words of the runtime. */
function describeFailure({ state: { terminated } }: ContainerStatus): string {
  const { reason = '', message = '', exitCode } = terminated ?? {};
  return join(NEVER_BEGUN.has(reason) ? reason : `it ended with ${exitCode}`, message);
}

const disruptionOf = ({ status }: Pod) =>
  status.conditions.find(({ type, status: is }) => type === 'DisruptionTarget' && is === 'True');

function describeDisruption(reason: string, node: string): string {
  switch (reason) {
    case 'PreemptionByScheduler':
      return `the scheduler ended its Pod on ${node} for one of a higher priority`;
    case 'DeletionByTaintManager':
      return `${node} does not answer or takes no such Pods any more`;
    case 'EvictionByEvictionAPI':
      return `its Pod was evicted from ${node}, which is drained`;
    case 'DeletionByPodGC':
      return `${node} is gone`;
    default:
      return `${node} ended its Pod (${reason})`;
  }
}

/** Returns why a waiting container will never start. */
function findRefusal(pod: Pod): PodState | undefined {
  for (const container of [...pod.status.initContainerStatuses, ...pod.status.containerStatuses]) {
    const { reason, message } = container.state.waiting ?? { reason: '', message: '' };
    if (NO_IMAGE.has(reason)) return refuse(pod, 'image', container, join(reason, message));
    if (NO_CONTAINER.has(reason) && !PASSES.test(message))
      return refuse(pod, 'container', container, join(reason, message));
  }
  return undefined;
}

function refuse({ spec }: Pod, what: 'image' | 'container', { name }: ContainerStatus, words: string): PodState {
  const container = [...spec.initContainers, ...spec.containers].find((one) => one.name === name);
  return { type: 'refused', for: what, image: container?.image ?? name, words };
}

/** Returns the words of the scheduler, which places no Pod for which there is no room, or of the kubelet. */
function waitsFor({ status }: Pod): string | undefined {
  const unscheduled = status.conditions.find(({ type, status: is }) => type === 'PodScheduled' && is === 'False');
  if (unscheduled !== undefined) return join(unscheduled.reason, unscheduled.message);
  for (const { state } of [...status.initContainerStatuses, ...status.containerStatuses]) {
    const { reason, message } = state.waiting ?? { reason: '', message: '' };
    if (message !== '') return join(reason, message);
  }
  return undefined;
}

function hasBegun({ state }: ContainerStatus): boolean {
  if (state.running !== undefined) return true;
  // A kubelet reports containers that it never created as ended, with this reason.
  return state.terminated !== undefined && state.terminated.reason !== 'ContainerStatusUnknown';
}

const shellOf = ({ status }: Pod) => status.containerStatuses.find(({ name }) => name === SHELL_CONTAINER);

/** Joins a text with words of the cluster, on one line and of bounded length. */
function join(text: string, words: string): string {
  const line = words.replaceAll(/\s+/g, ' ').trim().replace(/\.$/, '');
  const short = line.length > MOST_WORDS ? `${line.slice(0, MOST_WORDS)}…` : line;
  return short === '' ? text : `${text}: ${short}`;
}
