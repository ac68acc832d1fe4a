import type { AvailabilityListener } from '@shellfleet/redis';
import type { SessionShell } from '../shell/session-shell.ts';

/** Stops the keeper's clocks (timeouts of the entry) while Redis is down and nothing can be stored. */
export function pauseClocksWhileDown(shell: SessionShell): AvailabilityListener {
  const report = (state: 'away' | 'back') => {
    if (shell.live?.connected === true) shell.live.storage(state);
  };
  return { onDown: () => report('away'), onUp: () => report('back') };
}
