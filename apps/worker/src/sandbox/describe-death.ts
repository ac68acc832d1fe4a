import type { SandboxDeath } from './sandbox.ts';

/** Returns how a sandbox ended, in words for a Result. Without a death, another sandbox took its place. */
export function describeDeath(death: SandboxDeath | undefined): string {
  const { reason, detail } = death ?? {};
  return detail === undefined ? describeReason(reason) : `${describeReason(reason)}: ${detail}`;
}

function describeReason(reason: SandboxDeath['reason'] | undefined): string {
  switch (reason) {
    case undefined:
      return 'the sandbox was replaced';
    case 'oom':
      return 'the sandbox ran out of memory';
    case 'host-memory':
      return 'the memory of its host ran out, and the kernel killed the sandbox';
    case 'disk':
      return 'the sandbox filled the disk of its host, and was ended';
    case 'removed':
      return 'the sandbox was removed';
    case 'killed':
      return 'the sandbox was killed';
    case 'exited':
      return 'the sandbox ended';
  }
}
