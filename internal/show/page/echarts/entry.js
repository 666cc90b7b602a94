// What the reports use of Apache ECharts, and nothing else.
import * as core from 'echarts/core';
import {
  BarChart, BoxplotChart, CustomChart, HeatmapChart, LineChart, ScatterChart,
} from 'echarts/charts';
import {
  AriaComponent, DatasetComponent, DataZoomComponent, GridComponent, LegendComponent,
  MarkLineComponent, TitleComponent, ToolboxComponent, TooltipComponent, VisualMapComponent,
} from 'echarts/components';
import { SVGRenderer } from 'echarts/renderers';

core.use([
  BarChart, BoxplotChart, CustomChart, HeatmapChart, LineChart, ScatterChart,
  AriaComponent, DatasetComponent, DataZoomComponent, GridComponent, LegendComponent,
  MarkLineComponent, TitleComponent, ToolboxComponent, TooltipComponent, VisualMapComponent,
  SVGRenderer,
]);

export const init = core.init;
