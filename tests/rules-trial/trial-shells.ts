import type { TestImages } from '@shellfleet/setup';
import type { TrialShell } from './run-in-shells.ts';

export function trialShells(sessionImage: string, { busybox, dashOnly }: TestImages): TrialShell[] {
  return [
    { name: 'bash', image: sessionImage, command: ['/bin/bash'] },
    { name: 'dash', image: dashOnly, command: ['/bin/sh'] },
    { name: 'ash', image: busybox, command: ['/bin/sh'] },
  ];
}
