import { readFileSync } from 'node:fs';
import { DocumentError, parseDocument } from '@shellfleet/policy';
import { toIssueText } from '@shellfleet/protocol';
import { z } from 'zod';
import { allowSchema } from './allow-section.ts';
import { ConfigError } from './config.ts';
import { environmentSchema } from './environment.ts';
import { kubernetesSchema } from './kubernetes-section.ts';

/** Settings of the egress proxy of a fleet. */
export interface EgressConfig {
  port: number;
  sealKeys: string[];
  hosts: string[];
  privateAddresses: string[];
  /** Names that are resolved at a time. Each blocks one of the threads of the process. */
  lookups: number;
  logLevel: string;
}

/** Threads of a process of Node whose environment does not say otherwise. */
const USUAL_THREADS = 4;

/** Parts of the configuration file of the workers. Other sections name files that the proxy does not have. */
const fileSchema = z.object({
  allow: allowSchema.prefault({}),
  kubernetes: kubernetesSchema.required({ egress: true }),
});

const variablesSchema = environmentSchema.pick({ SHELLFLEET_LOG_LEVEL: true }).extend({
  SHELLFLEET_CONFIG: z.string('must name the configuration file of the workers'),
  UV_THREADPOOL_SIZE: z.coerce.number().int().min(2).default(USUAL_THREADS),
  SHELLFLEET_SEAL_KEY: environmentSchema.shape.SHELLFLEET_SEAL_KEY.unwrap(),
});

/** Reads the settings. Throws ConfigError. */
export function readEgressConfig(env: NodeJS.ProcessEnv): EgressConfig {
  const { data, error } = variablesSchema.safeParse(env, { error: toIssueText });
  if (data === undefined) {
    const issues = error.issues.map((issue) => `${String(issue.path[0])} ${issue.message}`);
    throw new ConfigError(issues.join('; '));
  }
  const { allow, kubernetes } = readSections(data.SHELLFLEET_CONFIG);
  return {
    port: kubernetes.egress.port,
    sealKeys: data.SHELLFLEET_SEAL_KEY,
    hosts: allow.hosts,
    privateAddresses: allow.privateAddresses,
    lookups: Math.floor(data.UV_THREADPOOL_SIZE / 2),
    logLevel: data.SHELLFLEET_LOG_LEVEL,
  };
}

function readSections(path: string): z.output<typeof fileSchema> {
  try {
    return parseDocument(readFileSync(path, 'utf8'), fileSchema, path);
  } catch (error) {
    const { message } = error as Error;
    const problem = error instanceof DocumentError ? message : `${path} cannot be read: ${message}`;
    throw new ConfigError(`SHELLFLEET_CONFIG: ${problem}`);
  }
}
