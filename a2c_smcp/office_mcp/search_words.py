"""The words that a search for tools knows: those that say nothing, those that mean the same, Chinese in English. Pure.

The tables hold the common vocabulary of tools: verbs that tools are named by, and the things that tools touch.
"""

from typing import Final

__all__ = ["ALIKE", "CHINESE", "SILENT"]

_SILENT: Final = """
a about after again all also am an and any are as at be been but by can could did do does each every for from give had
has have he her here him his how i if in into is it its just let like may me more most must my need no not of off on
once one only or other our out over own please she should since so some such tell than that the their them then there
these they this those through to told too up us use using very via want was we were what when where which while
who whose why will with would you your
"""
SILENT: Final = frozenset(_SILENT.split())

#: Groups of words with a similar meaning. Another word of the group counts less than the word itself.
ALIKE: Final = (
    "create add new make open put insert generate build draw start",
    "delete remove drop erase clear forget uninstall discard",
    "send post write reply submit publish",
    "get read show fetch retrieve view display see look load",
    "find search look locate query lookup discover",
    "list show enumerate browse",
    "run execute start launch perform invoke call",
    "stop end kill terminate cancel close abort quit",
    "restart reload rollout reboot reset",
    "undo revert reset rollback restore",
    "change edit update modify replace rename set patch alter adjust",
    "change diff difference modification compare",
    "move rename relocate transfer",
    "copy duplicate clone fork",
    "download fetch get export save",
    "upload import push send attach",
    "choose select pick option dropdown",
    "type enter input fill write",
    "press click tap push button",
    "wait until delay pause",
    "open navigate visit go goto",
    "back previous return",
    "merge combine join unite",
    "convert transform turn translate",
    "extract parse pull scrape",
    "summarize summary abstract outline overview",
    "explain describe detail info information about documentation",
    "remember memory store knowledge save entity observation note fact",
    "know forget knowledge memory entity observation recall",
    "scale resize replica size",
    "large size big length",
    "assign assignee owner",
    "react reaction emoji",
    "check verify test validate status",
    "monitor watch follow track observe",
    "login sign authenticate password",
    "image picture photo screenshot figure",
    "diagram chart graph plot draw visualize",
    "event meeting appointment calendar schedule",
    "folder directory",
    "file document path",
    "web internet online website site page url",
    "page website url",
    "browser tab window",
    "message chat conversation text",
    "mail email inbox",
    "channel room group",
    "user person people member who profile",
    "issue ticket bug problem task report",
    "error failure fail crash exception failing warning log",
    "comment remark discussion feedback",
    "pod container kubernetes docker kubectl deployment",
    "service deployment container pod",
    "cell range spreadsheet excel sheet worksheet",
    "workbook spreadsheet excel sheet",
    "row line record",
    "table database sql",
    "time clock timezone hour date",
    "modified changed metadata date",
    "drive car driving direction route travel",
    "bicycle bike cycling ride bicycling",
    "walk walking foot",
    "train bus transit transport",
    "far distance kilometer mile length",
    "address location place geocode position",
    "coordinate latitude longitude geocode location",
    "restaurant business shop local place food cafe hotel",
    "near nearby around local close",
    "weather forecast temperature rain",
    "news article story",
    "paper publication research arxiv article study",
    "encyclopedia wikipedia article",
    "history log past",
    "last recent history",
    "repository repo project",
    "branch fork",
    "code source program function script",
    "network request http traffic api",
    "payment refund charge money invoice",
    "library package module dependency",
    "think reason plan reflect",
)

_CHINESE: Final = """
读取 read get|阅读 read|读 read|写入 write|写 write|编写 write|保存 save write|创建 create|新建 create
建立 create|生成 generate create|添加 add|增加 add|插入 insert|删除 delete|移除 remove|清除 clear|清空 clear
修改 edit update|编辑 edit|更新 update|替换 replace edit|更改 change|重命名 rename move|改名 rename move
移动 move|复制 copy|拷贝 copy|粘贴 paste|合并 merge|比较 compare diff|对比 compare diff|查看 get view
查询 query search|查找 search find|搜索 search|搜 search|寻找 find search|找 find search|检索 search
获取 get fetch|列出 list|列表 list|显示 show|展示 show|打开 open navigate|关闭 close|启动 start|运行 run
执行 execute run|停止 stop|重启 restart|暂停 pause|取消 cancel|等待 wait|发送 send post|发 send post
发布 publish post|回复 reply|转发 forward|上传 upload|下载 download|导出 export|导入 import|安装 install
卸载 uninstall|部署 deploy deployment|扩容 scale|回滚 rollback undo|撤销 undo reset|恢复 restore
提交 commit submit|推送 push|拉取 pull|克隆 clone|暂存 stage add|点击 click|单击 click|双击 click|按 press
输入 type input|填写 fill|填 fill|选择 select|拖动 drag|拖拽 drag|滚动 scroll|悬停 hover|截图 screenshot
截屏 screenshot|拍照 photo|登录 login|注册 register|翻译 translate|转换 convert|换算 convert|计算 calculate
统计 count statistics|排序 sort|筛选 filter|过滤 filter|总结 summarize|摘要 summary abstract|解释 explain
分析 analyze|思考 think|记住 remember memory|记忆 memory|忘记 forget delete|记下 remember note
通知 notify notification|提醒 remind reminder|预订 book|购买 buy|支付 pay payment|退款 refund|画 draw
绘制 draw generate|绘图 draw chart|文件夹 directory folder|文件 file|目录 directory|路径 path|内容 content
文本 text|文字 text|文档 document|图片 image|图像 image|照片 photo|视频 video|音频 audio|网页 page web
网站 website|网上 web internet|网络 network web|互联网 internet web|浏览器 browser|链接 link url|页面 page
按钮 button click|表单 form|标签页 tab|窗口 window|下拉 dropdown select|弹窗 dialog|控制台 console
数据库 database sql|表格 table|数据 data|表 table|行 row|列 column|单元格 cell|工作表 sheet|工作簿 workbook
电子表格 spreadsheet|公式 formula|图表 chart|柱状图 bar chart|折线图 line chart|饼图 pie chart
流程图 flow diagram|思维导图 mind map|幻灯片 slide presentation|代码 code|仓库 repository|分支 branch
提交记录 commit log history|拉取请求 pull request|合并请求 pull request merge|问题单 issue|问题 issue
工单 ticket issue|缺陷 bug issue|任务 task|待办 todo task|评论 comment|标签 label tag|版本 version|日志 log
错误 error|容器 container pod|集群 cluster|节点 node|服务器 server|服务 service|进程 process|端口 port
命令 command|脚本 script|消息 message|信息 information|同事 user message|频道 channel|群 group channel
聊天 chat message|邮件 email mail|邮箱 email|联系人 contact|用户 user|成员 member user|历史 history
记录 record log history|最近 recent last|最新 latest|笔记 note page|日历 calendar|日程 event calendar schedule
会议 meeting event|时间 time|几点 current time|时区 timezone|日期 date|今天 today|明天 tomorrow forecast
现在 current now|天气 weather forecast|温度 temperature|地图 map|地址 address|位置 location|坐标 coordinates
经纬度 coordinates latitude longitude|附近 nearby around local|周边 around nearby|餐厅 restaurant place
餐馆 restaurant place|饭店 restaurant place|酒店 hotel place|路线 route directions|导航 directions navigate
开车 driving drive|驾车 driving|骑车 bicycling bicycle|骑行 bicycling|步行 walking|公交 transit bus
地铁 transit subway|火车 train|距离 distance|多远 distance|新闻 news|资料 information web|文章 article
论文 paper|百科 wikipedia|股票 stock|价格 price|订单 order|客户 customer|产品 product|喜好 preference
偏好 preference|知识 knowledge|实体 entity|关系 relation|大小 size|名称 name|密码 password|权限 permission
设置 settings|配置 configuration config|状态 status|列举 list|字 word text|树 tree|多少 count|哪些 list|谁 user
"""
#: Common Chinese words, and the English words that tools have for them.
CHINESE: Final = {
    entry.split()[0]: tuple(entry.split()[1:]) for entry in _CHINESE.replace("\n", "|").split("|") if entry.strip()
}
