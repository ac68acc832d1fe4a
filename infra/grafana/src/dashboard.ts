import {
  LegendDisplayMode,
  LegendPlacement,
  StackingConfigBuilder,
  StackingMode,
  VizLegendOptionsBuilder,
} from '@grafana/grafana-foundation-sdk/common';
import {
  DashboardBuilder,
  DatasourceVariableBuilder,
  QueryVariableBuilder,
  RowBuilder,
  VariableRefresh,
} from '@grafana/grafana-foundation-sdk/dashboard';
import { DataqueryBuilder } from '@grafana/grafana-foundation-sdk/prometheus';
import * as stat from '@grafana/grafana-foundation-sdk/stat';
import * as timeseries from '@grafana/grafana-foundation-sdk/timeseries';
import { type PanelPlan, type Query, ROWS } from './panels.ts';

const SOURCE = { type: 'prometheus', uid: '${datasource}' };
/** Grafana divides the width of a dashboard into 24 parts. */
const NUMBER_WIDTH = 4;
const GRAPH_WIDTH = 8;

/** Returns the dashboard as Grafana imports it. */
export function writeDashboard(): string {
  const builder = new DashboardBuilder('Shellfleet')
    .uid('shellfleet')
    .tags(['shellfleet'])
    .refresh('30s')
    .time({ from: 'now-1h', to: 'now' })
    .timezone('browser')
    .withVariable(new DatasourceVariableBuilder('datasource').label('Prometheus').type('prometheus'))
    .withVariable(
      new QueryVariableBuilder('job')
        .label('Fleet')
        .datasource(SOURCE)
        .query('label_values(shellfleet_worker_info, job)')
        .multi(true)
        .refresh(VariableRefresh.OnDashboardLoad)
        .includeAll(true)
        .current({ text: 'All', value: '$__all', selected: true })
        .allValue('.*'),
    );
  for (const { title, panels } of ROWS) {
    builder.withRow(new RowBuilder(title));
    for (const panel of panels) builder.withPanel(toPanel(panel));
  }
  return `${JSON.stringify(builder.build(), null, 2)}\n`;
}

function toPanel(plan: PanelPlan) {
  const { title, description, unit, kind, queries } = plan;
  const targets = queries.map(toTarget);
  if (kind === 'number') {
    const panel = new stat.PanelBuilder().title(title).description(description).unit(unit).datasource(SOURCE);
    for (const target of targets) panel.withTarget(target);
    return panel.height(4).span(NUMBER_WIDTH);
  }
  const panel = new timeseries.PanelBuilder().title(title).description(description).unit(unit).datasource(SOURCE);
  for (const target of targets) panel.withTarget(target);
  panel.min(0).height(8).span(GRAPH_WIDTH).legend(toLegend());
  if (kind === 'graph') return panel.fillOpacity(5);
  return panel.fillOpacity(30).stacking(new StackingConfigBuilder().mode(StackingMode.Normal));
}

const toLegend = () =>
  new VizLegendOptionsBuilder()
    .showLegend(true)
    .displayMode(LegendDisplayMode.List)
    .placement(LegendPlacement.Bottom)
    .calcs([]);

function toTarget({ expr, legend }: Query, index: number): DataqueryBuilder {
  const refId = String.fromCharCode('A'.charCodeAt(0) + index);
  return new DataqueryBuilder().refId(refId).expr(expr).legendFormat(legend).range();
}
