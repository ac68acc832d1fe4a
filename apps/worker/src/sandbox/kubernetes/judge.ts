import type { Examination } from '@shellfleet/keeper';
import { withSetting } from '@shellfleet/policy';
import type { FieldIssue } from '@shellfleet/protocol';

/** What a Pod must have in force. */
export interface ExpectedInPod {
  memoryBytes: number;
  /** Limit of the session, if it asks for one. */
  pids: number | undefined;
  /** Limit of the kubelets on the processes of a Pod, as the operator knows it. */
  podPidsLimit?: number | undefined;
  userNamespaces: boolean;
  /** Addresses that must be out of reach, and at which something listens. */
  probes: readonly string[];
  /** Properties that the operator lets a Pod lack (`unenforced`). */
  unenforced: readonly string[];
}

/** Something that the keeper did not find in force. `property` is the name with which an operator accepts that. */
interface Shortfall {
  path: string;
  message: string;
  property?: 'network' | 'pids' | 'memory' | 'seccomp' | 'noNewPrivs' | 'userNamespaces' | 'exec';
}

const SECTION = 'of the section kubernetes in SHELLFLEET_CONFIG';
/** Seccomp mode of a process with a filter. */
const FILTER = 2;

/** Returns what the keeper of a new Pod found to fall short of the plan, each with the setting that mends it. */
export function judgeExamination(found: Examination, expected: ExpectedInPod): FieldIssue[] {
  return [
    ...judgePrivileges(found),
    ...judgeSeccomp(found),
    ...judgeUserNamespace(found, expected),
    ...judgeMemory(found, expected),
    ...judgePids(found, expected),
    ...judgeWorkspace(found),
    ...expected.probes.flatMap((address) => judgeProbe(address, found)),
  ].flatMap(({ path, message, property }) => {
    if (property === undefined) return [{ path, message }];
    if (expected.unenforced.includes(property)) return [];
    return [{ path, message: withSetting(message, `unenforced: ['${property}'] ${SECTION}`) }];
  });
}

function judgePrivileges({ effectiveCapabilities, boundingCapabilities, noNewPrivs }: Examination): Shortfall[] {
  const path = 'policy';
  const capabilities = [effectiveCapabilities, boundingCapabilities].some((bits) => bits !== 0n)
    ? [
        {
          path,
          message: 'the processes of the Pod have capabilities, although it drops all: use another runtime class',
        },
      ]
    : [];
  if (noNewPrivs === true) return capabilities;
  if (noNewPrivs === undefined) {
    const message = `the runtime does not tell whether programs in the Pod can gain privileges: /proc/self/status has no NoNewPrivs there, as in gVisor`;
    return [...capabilities, { path, message, property: 'noNewPrivs' }];
  }
  const message =
    'programs in the Pod can gain privileges, although it sets allowPrivilegeEscalation: false: use another runtime class';
  return [...capabilities, { path, message }];
}

function judgeSeccomp({ seccomp }: Examination): Shortfall[] {
  if (seccomp === FILTER) return [];
  const message =
    'no seccomp filter is in force, although the Pod asks for RuntimeDefault: use a runtime with a default profile';
  return [{ path: 'policy', message, property: 'seccomp' }];
}

/** A map that gives a user the same number outside is that of the node: old runtimes ignore `hostUsers: false`. */
function judgeUserNamespace({ uidMap = [] }: Examination, { userNamespaces }: ExpectedInPod): Shortfall[] {
  const isSeparate = uidMap.length > 0 && uidMap.every(({ inside, outside }) => inside !== outside);
  if (!userNamespaces || isSeparate) return [];
  const message = `the users of the Pod are those of its node, although userNamespaces ${SECTION} is true: that needs containerd 2.0, runc 1.2 and Linux 6.3 there`;
  return [{ path: 'policy', message, property: 'userNamespaces' }];
}

function judgeMemory({ memoryMaxBytes }: Examination, { memoryBytes }: ExpectedInPod): Shortfall[] {
  if (memoryMaxBytes !== undefined && memoryMaxBytes <= memoryBytes) return [];
  const message = `asks for ${memoryBytes} bytes, and the control group of the Pod has ${bound(memoryMaxBytes)}: its node must enforce limits of memory`;
  return [{ path: 'limits.memoryBytes', message, property: 'memory' }];
}

/**
 * A kubelet sets its limit on the group above that of the container, which the container cannot see. So no limit in
 * sight is accepted if the operator has named that of the kubelets, and a limit in sight must be low enough.
 */
function judgePids({ pidsMax }: Examination, { pids, podPidsLimit }: ExpectedInPod): Shortfall[] {
  if (pids === undefined || (pidsMax !== undefined && pidsMax <= pids)) return [];
  const isAbove = pidsMax === undefined || pidsMax === Number.POSITIVE_INFINITY;
  if (isAbove && podPidsLimit !== undefined && podPidsLimit <= pids) return [];
  const message = `asks for ${pids}, and the control group of the Pod has ${bound(pidsMax)}: set podPidsLimit of the kubelets to at most ${pids}, and name it as podPidsLimit ${SECTION}`;
  return [{ path: 'limits.pids', message, property: 'pids' }];
}

function judgeWorkspace({ execWorkspace }: Examination): Shortfall[] {
  if (execWorkspace === true) return [];
  const message = `no file in /workspace can be executed: its volume is mounted with noexec, so use another workspace ${SECTION}`;
  return [{ path: 'workspace', message, property: 'exec' }];
}

/**
 * An address that refuses the connection is out of reach: something listens there, so a policy refused it. A missing
 * result proves nothing.
 */
function judgeProbe(address: string, { probes }: Examination): Shortfall[] {
  const result = probes.get(address);
  const path = 'sandbox.network';
  if (result === undefined || result === 'failed')
    return [{ path, message: `its keeper could not try ${address}, which must be out of reach`, property: 'network' }];
  if (result !== 'connected') return [];
  const message = `the Pod reaches ${address}, which must be out of reach: apply the NetworkPolicies of the chart, in a cluster whose CNI enforces them`;
  return [{ path, message, property: 'network' }];
}

function bound(limit: number | undefined): string {
  if (limit === undefined) return 'a limit that its keeper cannot read';
  return limit === Number.POSITIVE_INFINITY ? 'no limit' : `a limit of ${limit}`;
}
