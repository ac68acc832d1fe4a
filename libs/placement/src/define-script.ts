import { defineScript, type Script } from '@shellfleet/mailbox';

/** Defines the script `bullmq/<name>.lua` of this folder. */
export const definePlacementScript = (name: string): Script => defineScript(`bullmq/${name}`, import.meta.url);
