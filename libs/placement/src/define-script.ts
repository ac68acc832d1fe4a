import { defineScript, type Script } from '@shellfleet/redis';

/** Defines the script `bullmq/<name>.lua` of this directory, with its parts of `queues-prelude.lua`. */
export const definePlacementScript = (name: string): Script =>
  defineScript(import.meta.url, `bullmq/${name}`, 'queues-prelude');
