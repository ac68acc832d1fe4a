import { readFileSync } from 'node:fs';
import { DocumentError, parseDocument, rulesSectionSchema } from '@shellfleet/policy';
import { labelsSchema } from '@shellfleet/protocol';
import { z } from 'zod';
import { allowSchema } from './allow-section.ts';
import { approvalsSchema } from './approvals-section.ts';
import { auditSchema } from './audit-section.ts';
import { codexSchema } from './codex-section.ts';
import { escalationSectionSchema } from './escalation-section.ts';
import { imagesSchema } from './images-section.ts';
import { keysSchema } from './keys-section.ts';
import { kubernetesSchema } from './kubernetes-section.ts';
import { poolsSchema } from './pools-section.ts';

// The file that SHELLFLEET_CONFIG names has the settings that need more structure than a variable. Each section has its
// schema in a file here. Without the file, each section has its defaults.

/** Section of the fleet's configuration, which no host has. */
const fleetSection = z
  .never('belongs to the fleet, not to one host: write it with `shellfleet config apply FILE`')
  .optional();

const configFileSchema = z.strictObject(
  {
    rules: rulesSectionSchema.default([]).describe('Files with rules about commands; all hold together'),
    allow: allowSchema.prefault({}).describe('What sessions may ask for, beside the policies, users and workspaces'),
    escalation: escalationSectionSchema
      .optional()
      .describe('The wider sandbox of commands that leave that of their session; without it none does'),
    approvals: approvalsSchema.prefault({}).describe('The questions that wait for a person'),
    keys: keysSchema.optional().describe('Who may submit and who may answer; without it nothing has to be signed'),
    audit: auditSchema.prefault({}).describe('What this host writes down about commands and approvals'),
    labels: labelsSchema
      .default({})
      .describe('Labels of this host, names and values, which sessions may ask for (`hosts` of their spec)'),
    tenants: fleetSection,
    images: imagesSchema.prefault({}).describe('Images that this host pulls, and how many of them it keeps'),
    pools: poolsSchema.default([]).describe('Sandboxes that are ready before a session asks for one'),
    codex: codexSchema.prefault({}).describe('Settings of the Codex CLI, for the policy of that name'),
    kubernetes: kubernetesSchema.optional().describe('The cluster and the Pods, for the policy of that name'),
  },
  'must have only these sections: rules, allow, escalation, approvals, keys, audit, labels, images, pools, codex, kubernetes',
);
export type ConfigFile = z.output<typeof configFileSchema>;

/** Reads the file at an absolute path. Without a path, every section has its defaults. Throws DocumentError. */
export function readConfigFile(path: string | undefined): ConfigFile {
  return parseDocument(path === undefined ? '' : read(path), configFileSchema, path ?? 'the configuration');
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new DocumentError(`${path} cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
}
